// Adds decoded values to accumulators.
#ifndef GRADWIRE_CODEC_ACCUMULATE_H_
#define GRADWIRE_CODEC_ACCUMULATE_H_

#include <cstddef>
#include <optional>

#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// Type of the accumulators for frames of `dtype`: float32 for float32, float16 and bfloat16,
// float64 for float64; none for other types.
std::optional<DType> accumulator_dtype(DType dtype) noexcept;

// accumulator[i] += value[i] for `count` values of `dtype`, each rounded once to nearest even.
// Ranges need no alignment and do not overlap. Precondition: `dtype` has an accumulator type;
// the floating-point environment is that of FpEnvironment.
void accumulate(DType dtype, const std::byte* values, std::size_t count, std::byte* accumulator);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_ACCUMULATE_H_
