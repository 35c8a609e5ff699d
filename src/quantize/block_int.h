// Kernels of codec `block`. Pure loops without errors or allocation; values are float32 where no
// type is given, and need no alignment; the floating-point environment is that of FpEnvironment.
#ifndef GRADWIRE_QUANTIZE_BLOCK_INT_H_
#define GRADWIRE_QUANTIZE_BLOCK_INT_H_

#include <cstddef>
#include <cstdint>

#include "gradwire/tensor_view.h"
#include "quantize/block_int_format.h"

namespace gradwire::internal {

// The scale of a group with this largest magnitude, the bits of a float32 or of a float64: rounded
// up to bfloat16, or kZeroGroupScale, or kRawGroupScale for what integers cannot carry.
template <typename Bits>
constexpr std::uint16_t block_scale_of(Bits largest) noexcept {
  // Exponent field and upper seven mantissa bits are the bfloat16 but for float64's bias; patterns
  // of positive numbers are ordered, those of Inf and NaN come last.
  constexpr bool kIsFloat32 = sizeof(Bits) == sizeof(std::uint32_t);
  constexpr unsigned kCut = kIsFloat32 ? 23 - 7 : 52 - 7;
  constexpr Bits kBias = kIsFloat32 ? 0 : (1023 - 127) << 7;
  if (largest == 0) return kZeroGroupScale;
  const Bits up = (largest + ((Bits{1} << kCut) - 1)) >> kCut;
  if (up < kBias + kLeastBlockScale || up >= kBias + kInfScale) return kRawGroupScale;
  return static_cast<std::uint16_t>(up - kBias);
}

// block_scale_of() the largest magnitude of `count` values.
std::uint16_t block_int_scale(const std::byte* values, std::size_t count) noexcept;

// Integers of a group with the proper scale `scale`, rounded to nearest.
void block_int_quantize_nearest(const std::byte* values, std::size_t count, std::uint16_t scale,
                                unsigned bits, std::int8_t* integers) noexcept;
// The same rounded up with the probability of the fraction; `noise`: uniform, one per value.
void block_int_quantize_stochastic(const std::byte* values, std::size_t count, std::uint16_t scale,
                                   unsigned bits, const std::uint16_t* noise,
                                   std::int8_t* integers) noexcept;

// How the integers of a run of values are rounded: to nearest, or with the noise of their places.
struct BlockRounding {
  bool stochastic = false;
  std::uint64_t key = 0;    // noise_key()
  std::uint64_t index = 0;  // of the first value, inside its parameter
};

// Scales and integers of the groups of `count` values (the last one may be short), at most
// kMostBlockGroup; the integers of zero groups and raw groups are 0. `dtype`: of the values, one of
// the four floating types.
void block_int_encode_ref(DType dtype, const std::byte* values, std::size_t count,
                          std::uint32_t group, unsigned bits, const BlockRounding& rounding,
                          std::uint16_t* scales, std::int8_t* integers) noexcept;
// The same, vectorized.
void block_int_encode_simd(DType dtype, const std::byte* values, std::size_t count,
                           std::uint32_t group, unsigned bits, const BlockRounding& rounding,
                           std::uint16_t* scales, std::int8_t* integers) noexcept;

// Values of `count` unsigned `bits`-bit patterns of integers, at most kMostBlockGroup, for a proper
// scale. False, with `values` unspecified, if one of the integers is below -m.
bool block_int_dequantize_ref(DType dtype, const std::uint8_t* patterns, std::size_t count,
                              std::uint16_t scale, unsigned bits, std::byte* values) noexcept;
// The same, vectorized.
bool block_int_dequantize_simd(DType dtype, const std::uint8_t* patterns, std::size_t count,
                               std::uint16_t scale, unsigned bits, std::byte* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_BLOCK_INT_H_
