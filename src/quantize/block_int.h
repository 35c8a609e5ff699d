// Kernels of codec `block`, one group at a time. Pure loops without errors or allocation; float32
// values need no alignment; the floating-point environment is that of FpEnvironment.
#ifndef GRADWIRE_QUANTIZE_BLOCK_INT_H_
#define GRADWIRE_QUANTIZE_BLOCK_INT_H_

#include <cstddef>
#include <cstdint>

#include "quantize/block_int_format.h"

namespace gradwire::internal {

// The scale of `count` float32 values: their largest magnitude rounded up to bfloat16, or
// kZeroGroupScale, or kRawGroupScale for what integers cannot carry.
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

// Scales and integers of the groups of `count` values (the last one may be short); the integers of
// zero groups and raw groups are 0. `group` is at most kMostBlockGroup.
void block_int_encode_ref(const std::byte* values, std::size_t count, std::uint32_t group,
                          unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                          std::int8_t* integers) noexcept;
// The same, vectorized.
void block_int_encode_simd(const std::byte* values, std::size_t count, std::uint32_t group,
                           unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                           std::int8_t* integers) noexcept;

// Values of `count` unsigned `bits`-bit patterns of integers, for a proper scale. False, with
// `values` unspecified, if one of the integers is below -m.
bool block_int_dequantize(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                          unsigned bits, std::byte* values) noexcept;

// The same, vectorized.
bool block_int_dequantize_simd(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                               unsigned bits, std::byte* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_BLOCK_INT_H_
