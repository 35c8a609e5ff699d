// The arithmetic of a reduction: sums in an accumulator of float32 (float64 for float64), scaled
// and rounded to the tensor's type at the end. Kernels without errors.
//
// Preconditions of all: dtype is float32, float64, float16 or bfloat16; pointers hold `count`
// values and need no alignment; the caller keeps an FpEnvironment around them.
// Deterministic: one operation per value and rank, in rank order, no reassociation.
#ifndef GRADWIRE_COLLECTIVE_REDUCE_H_
#define GRADWIRE_COLLECTIVE_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// float32 for float32, float16, bfloat16; float64 for float64.
constexpr DType accumulator_dtype(DType dtype) noexcept {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// Sets every accumulator to -0, the neutral element of addition: -0 + x is x for every x, +0 and
// -0 included, so that the first rank needs no case of its own.
void clear_accumulators(DType dtype, std::byte* accumulators, std::uint64_t count) noexcept;

// accumulators[i] += values[i], the values being of `dtype`.
void accumulate(DType dtype, const std::byte* values, std::byte* accumulators,
                std::uint64_t count) noexcept;

// results[i] = round to dtype(accumulators[i] x 1/world if `average`); NaN becomes the positive
// quiet NaN without payload, as the payload of a sum depends on the order of operands that a
// compiler chooses.
// Returns how many results are NaN or infinite.
std::uint64_t finish_reduction(DType dtype, bool average, int world, const std::byte* accumulators,
                               std::byte* results, std::uint64_t count) noexcept;

// Sums, in float64, of (decoded - value)^2 and value^2 over the pairs that are both finite.
struct ErrorSums {
  double error_squares = 0;
  double value_squares = 0;
};
void add_error(DType dtype, const std::byte* values, const std::byte* decoded, std::uint64_t count,
               ErrorSums* sums) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_REDUCE_H_
