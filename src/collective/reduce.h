// Begin and end of a reduction: accumulators of float32 (float64 for float64), to which the codec
// layer adds, are scaled and rounded to the tensor's type. Kernels without errors.
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

// Sets every accumulator to -0, the neutral element of addition: -0 + x is x for every x, +0 and
// -0 included, so that the first rank needs no case of its own.
void clear_accumulators(DType dtype, std::byte* accumulators, std::uint64_t count) noexcept;

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
