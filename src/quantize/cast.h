// Kernels of codec `cast` (docs/format.md 4.1): float32 and float64 to and from bfloat16 and
// float16. Pure loops over unaligned little-endian values; the ranges do not overlap.
#ifndef GRADWIRE_QUANTIZE_CAST_H_
#define GRADWIRE_QUANTIZE_CAST_H_

#include <cstddef>

#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// Rounds `count` values of `from` (float32, float64) at `in` to nearest even values of `to`
// (float16, bfloat16) at `out`.
void cast_narrow(DType from, DType to, const std::byte* in, std::size_t count, std::byte* out);

// Widens `count` values of `from` (float16, bfloat16) at `in` to `to` (float32, float64), exactly.
void cast_widen(DType from, DType to, const std::byte* in, std::size_t count, std::byte* out);

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_CAST_H_
