#include <algorithm>

#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/levels.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {
namespace {

float scale_value(std::uint16_t scale) noexcept {
  return float32_from_bits(float32_bits_from_bfloat16(scale));
}

}  // namespace

std::uint16_t block_int_scale(const std::byte* values, std::size_t count) noexcept {
  // Magnitudes order like their bit patterns, which are positive as int32.
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t magnitude = load_le<std::int32_t>(values + 4 * i) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest == 0) return kZeroGroupScale;
  if (largest >= static_cast<std::int32_t>(kFloat32Inf)) return kRawGroupScale;
  const std::uint32_t scale = (static_cast<std::uint32_t>(largest) + 0xFFFFu) >> 16;  // up
  return scale >= kInfScale || scale < kLeastBlockScale ? kRawGroupScale
                                                        : static_cast<std::uint16_t>(scale);
}

void block_int_quantize_nearest(const std::byte* values, std::size_t count, std::uint16_t scale,
                                unsigned bits, std::int8_t* integers) noexcept {
  levels_quantize_nearest_ref(values, count, scale_value(scale), bits, integers);
}

void block_int_quantize_stochastic(const std::byte* values, std::size_t count, std::uint16_t scale,
                                   unsigned bits, const std::uint16_t* noise,
                                   std::int8_t* integers) noexcept {
  levels_quantize_stochastic_ref(values, count, scale_value(scale), bits, noise, integers);
}

void block_int_encode_ref(const std::byte* values, std::size_t count, std::uint32_t group,
                          unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                          std::int8_t* integers) noexcept {
  RunNoise noise;
  for (std::size_t first = 0; first < count; first += group) {
    const std::size_t n = std::min<std::size_t>(group, count - first);
    const std::byte* const from = values + sizeof(float) * first;
    const std::uint16_t scale = block_int_scale(from, n);
    *scales++ = scale;
    if (scale == kZeroGroupScale || scale == kRawGroupScale) {
      std::fill_n(integers + first, n, std::int8_t{0});
    } else if (!rounding.stochastic) {
      block_int_quantize_nearest(from, n, scale, bits, integers + first);
    } else {
      block_int_quantize_stochastic(from, n, scale, bits,
                                    noise.fill(rounding.key, rounding.index + first, n),
                                    integers + first);
    }
  }
}

bool block_int_dequantize(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                          unsigned bits, std::byte* values) noexcept {
  const float unit = scale_value(scale) / static_cast<float>(most_level(bits));
  return levels_dequantize_ref(patterns, count, unit, bits, values);
}

}  // namespace gradwire::internal
