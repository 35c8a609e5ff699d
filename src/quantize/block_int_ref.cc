#include <algorithm>

#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {
namespace {

float scale_value(std::uint16_t scale) noexcept {
  return float32_from_bits(float32_bits_from_bfloat16(scale));
}

// f = t 2^16 rounded to an integer, to nearest even. Precondition: |t| <= 127 (1 + 2^-22), so
// |f| < 2^23: then |f| + 2^23 lies where float32 has a unit in the last place of exactly 1, and
// the addition does the rounding. Adding with f's sign keeps the sum out of [2^22, 2^23).
std::int32_t to_fixed_point(float t) noexcept {
  const float f = t * 65536.0f;  // exact: a power of two
  const float magic = float32_from_bits((float32_bits(f) & 0x80000000u) | 0x4B000000u);
  return static_cast<std::int32_t>((f + magic) - magic);
}

// Adds `addend(i)`, 0 to 65535, to the value in units of 2^-16 and takes the floor.
template <typename Addend>
void quantize(const std::byte* __restrict values, std::size_t count, std::uint16_t scale,
              unsigned bits, Addend addend, std::int8_t* __restrict integers) noexcept {
  const std::int32_t most = most_block_integer(bits);
  const float inverse = static_cast<float>(most) / scale_value(scale);
  for (std::size_t i = 0; i < count; ++i) {
    const float t = load_le<float>(values + 4 * i) * inverse;
    std::int32_t q = (to_fixed_point(t) + addend(i)) >> 16;
    q = q > most ? most : q;
    q = q < -most ? -most : q;
    integers[i] = static_cast<std::int8_t>(q);
  }
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
  quantize(
      values, count, scale, bits, [](std::size_t) { return 32768; }, integers);
}

void block_int_quantize_stochastic(const std::byte* values, std::size_t count, std::uint16_t scale,
                                   unsigned bits, const std::uint16_t* noise,
                                   std::int8_t* integers) noexcept {
  quantize(
      values, count, scale, bits,
      [noise](std::size_t i) { return static_cast<std::int32_t>(noise[i]); }, integers);
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

bool block_int_dequantize(const std::uint8_t* __restrict patterns, std::size_t count,
                          std::uint16_t scale, unsigned bits,
                          std::byte* __restrict values) noexcept {
  const std::int32_t most = most_block_integer(bits);
  const std::int32_t sign = most + 1;  // the sign bit, and what the forbidden integer negates
  const float unit = scale_value(scale) / static_cast<float>(most);
  std::int32_t forbidden = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t pattern = patterns[i];
    forbidden |= static_cast<std::int32_t>(pattern == sign);
    const std::int32_t q = (pattern ^ sign) - sign;  // sign-extends `bits` bits
    store_le(values + 4 * i, static_cast<float>(q) * unit);
  }
  return forbidden == 0;
}

}  // namespace gradwire::internal
