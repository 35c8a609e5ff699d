// The loops of levels.h.
#ifndef GRADWIRE_QUANTIZE_LEVELS_LOOPS_H_
#define GRADWIRE_QUANTIZE_LEVELS_LOOPS_H_

#include "core/always_inline.h"
#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/levels.h"

namespace gradwire::internal::loops {

// f = t 2^16 rounded to an integer, to nearest even. Precondition: |t| <= 127 (1 + 2^-22), so
// |f| < 2^23: then |f| + 2^23 lies where float32 has a unit in the last place of exactly 1, and
// the addition does the rounding. Adding with f's sign keeps the sum out of [2^22, 2^23).
GRADWIRE_ALWAYS_INLINE std::int32_t to_fixed_point(float t) noexcept {
  const float f = t * 65536.0f;  // exact: a power of two
  const float magic = float32_from_bits((float32_bits(f) & 0x80000000u) | 0x4B000000u);
  return static_cast<std::int32_t>((f + magic) - magic);
}

// Adds `addend(i)`, 0 to 65535, to the value in units of 2^-16 and takes the floor.
template <typename Addend>
GRADWIRE_ALWAYS_INLINE void quantize(const std::byte* __restrict values, std::size_t count,
                                     float scale, unsigned bits, Addend addend,
                                     std::int8_t* __restrict integers) noexcept {
  const std::int32_t most = most_level(bits);
  const float inverse = static_cast<float>(most) / scale;
  for (std::size_t i = 0; i < count; ++i) {
    const float t = load_le<float>(values + 4 * i) * inverse;
    std::int32_t q = (to_fixed_point(t) + addend(i)) >> 16;
    q = q > most ? most : q;
    q = q < -most ? -most : q;
    integers[i] = static_cast<std::int8_t>(q);
  }
}

GRADWIRE_ALWAYS_INLINE void levels_quantize_nearest(const std::byte* values, std::size_t count,
                                                    float scale, unsigned bits,
                                                    std::int8_t* integers) noexcept {
  quantize(
      values, count, scale, bits, [](std::size_t) { return 32768; }, integers);
}

GRADWIRE_ALWAYS_INLINE void levels_quantize_stochastic(const std::byte* values, std::size_t count,
                                                       float scale, unsigned bits,
                                                       const std::uint16_t* noise,
                                                       std::int8_t* integers) noexcept {
  quantize(
      values, count, scale, bits,
      [noise](std::size_t i) { return static_cast<std::int32_t>(noise[i]); }, integers);
}

GRADWIRE_ALWAYS_INLINE bool levels_dequantize(const std::uint8_t* __restrict patterns,
                                              std::size_t count, float unit, unsigned bits,
                                              std::byte* __restrict values) noexcept {
  const std::int32_t sign = most_level(bits) + 1;  // the sign bit, and what -m - 1 negates
  std::int32_t forbidden = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t pattern = patterns[i];
    forbidden |= static_cast<std::int32_t>(pattern == sign);
    const std::int32_t q = (pattern ^ sign) - sign;  // sign-extends `bits` bits
    store_le(values + 4 * i, static_cast<float>(q) * unit);
  }
  return forbidden == 0;
}

}  // namespace gradwire::internal::loops

#endif  // GRADWIRE_QUANTIZE_LEVELS_LOOPS_H_
