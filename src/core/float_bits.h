// Conversions between floating types on their bit patterns.
//
// Integers and exact float operations only, so that the result does not depend on rounding mode,
// flush-to-zero or the processor. Narrowing rounds to nearest even, overflow becomes Inf, NaN stays
// NaN (quiet, the low payload bits cut). Widening is exact; NaN payloads keep their place. The
// functions are free of branches on data so that compilers vectorize loops of them.
#ifndef GRADWIRE_CORE_FLOAT_BITS_H_
#define GRADWIRE_CORE_FLOAT_BITS_H_

#include <bit>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::uint32_t kFloat32Inf = 0x7F800000u;
inline constexpr std::uint32_t kFloat32Magnitude = 0x7FFFFFFFu;
inline constexpr std::uint64_t kFloat64Inf = 0x7FF0000000000000u;
inline constexpr std::uint64_t kFloat64Magnitude = 0x7FFFFFFFFFFFFFFFu;

constexpr std::uint32_t float32_bits(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value);
}
constexpr float float32_from_bits(std::uint32_t bits) noexcept {
  return std::bit_cast<float>(bits);
}

// All ones where a < b, else 0; a and b below 2^31. Selecting with masks, as `?:` around float
// operations becomes a branch where the compiler honours floating-point traps (GCC does by
// default), and then the loop is not vectorized.
constexpr std::uint32_t less_mask(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}
constexpr std::uint32_t select_bits(std::uint32_t mask, std::uint32_t a, std::uint32_t b) noexcept {
  return (a & mask) | (b & ~mask);
}

// ---- bfloat16: the upper half of a float32 ----

constexpr std::uint16_t bfloat16_from_float32_bits(std::uint32_t bits) noexcept {
  // Half of the last kept bit, less one if that bit is even: a tie carries only into an odd one.
  // The carry may run into the exponent, up to Inf, which is what rounding means there.
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  const bool nan = (bits & kFloat32Magnitude) > kFloat32Inf;
  return static_cast<std::uint16_t>(nan ? quiet : rounded);
}

constexpr std::uint32_t float32_bits_from_bfloat16(std::uint16_t bits) noexcept {
  return static_cast<std::uint32_t>(bits) << 16;
}

// ---- float16: 5 exponent bits, bias 15, 10 mantissa bits ----

constexpr std::uint16_t float16_from_float32_bits(std::uint32_t bits) noexcept {
  constexpr std::uint32_t k2ToMinus14 = 0x38800000u;
  const std::uint32_t magnitude = bits & kFloat32Magnitude;
  // Normal result: drop 13 bits as above, then move the bias from 127 to 15 (112 << 10).
  const std::uint32_t normal =
      ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  // Subnormal result, below 2^-14: counts units of 2^-24. Scaling by a power of two, truncation and
  // the rest are exact, so that the rounding mode has no say; a float32 that flush-to-zero would
  // hide is far below half a unit.
  const std::uint32_t is_subnormal = less_mask(magnitude, k2ToMinus14);
  const std::uint32_t bounded = select_bits(is_subnormal, magnitude, k2ToMinus14);
  const float scaled = float32_from_bits(bounded) * 0x1p24f;
  const auto units = static_cast<std::int32_t>(scaled);
  const float rest = scaled - static_cast<float>(units);
  // Up if rest > 1/2, or rest = 1/2 and units odd. Not negative, so its bits order like it.
  constexpr std::uint32_t kHalf = 0x3F000000u;
  const auto odd = static_cast<std::uint32_t>(units & 1);
  const std::uint32_t up = less_mask(kHalf, float32_bits(rest) + odd) & 1u;
  const std::uint32_t subnormal = static_cast<std::uint32_t>(units) + up;
  constexpr std::uint32_t kOverflow = 0x477FF000u;  // 65520, half way to 2^16: tie, to even
  const std::uint32_t nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  const std::uint32_t large = select_bits(less_mask(kFloat32Inf, magnitude), nan, 0x7C00u);
  const std::uint32_t result = select_bits(
      is_subnormal, subnormal, select_bits(less_mask(magnitude, kOverflow), normal, large));
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | result);
}

constexpr std::uint32_t float32_bits_from_float16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = (magnitude << 13) | kFloat32Inf;
  // Subnormal: m x 2^-24, m < 1024: exact in float32, and int to float is exact as well.
  const std::uint32_t subnormal =
      float32_bits(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return sign | select_bits(less_mask(magnitude, 0x400u), subnormal,
                            magnitude >= 0x7C00u ? special : normal);
}

// For float32 that are values of float16, whose NaN keep all their bits: the inverse of the above.
constexpr std::uint16_t exact_float16_from_float32_bits(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & kFloat32Magnitude;
  const std::uint32_t nan = 0x7C00u | ((magnitude >> 13) & 0x3FFu);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t number = float16_from_float32_bits(bits) & 0x7FFFu;
  return static_cast<std::uint16_t>(sign |
                                    select_bits(less_mask(kFloat32Inf, magnitude), nan, number));
}

// ---- float64 ----

// float64 to float32 by rounding to odd: truncated, with the last bit set if anything was lost.
// A second rounding to 16 bits then gives what one rounding would have given, as at least two
// bits lie between. Finite values beyond float32 become its largest (odd), never Inf.
constexpr std::uint32_t float32_bits_from_float64_to_odd(std::uint64_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000u;
  const std::uint64_t magnitude = bits & kFloat64Magnitude;
  if (magnitude > kFloat64Inf) {
    return sign | 0x7FC00000u | (static_cast<std::uint32_t>(magnitude >> 29) & 0x7FFFFFu);
  }
  if (magnitude == kFloat64Inf) return sign | kFloat32Inf;
  const auto exponent = static_cast<std::uint32_t>(magnitude >> 52);
  if (exponent >= 1023u + 128u) return sign | 0x7F7FFFFFu;
  if (exponent >= 1023u - 126u) {
    const std::uint64_t rebiased = magnitude - (std::uint64_t{1023 - 127} << 52);
    const std::uint32_t sticky = (rebiased & 0x1FFFFFFFu) != 0;
    return sign | static_cast<std::uint32_t>(rebiased >> 29) | sticky;
  }
  // Subnormal in float32: units of 2^-149; significand x 2^(exponent - 1075) is
  // significand >> (926 - exponent) units. Beyond 63 nothing but the sticky bit is left.
  if (magnitude == 0) return sign;
  const std::uint32_t shift = 926u - exponent;
  if (shift > 63u) return sign | 1u;
  const std::uint64_t significand = (magnitude & 0xFFFFFFFFFFFFFu) | (std::uint64_t{1} << 52);
  const std::uint32_t sticky = (significand & ((std::uint64_t{1} << shift) - 1)) != 0;
  return sign | static_cast<std::uint32_t>(significand >> shift) | sticky;
}

constexpr std::uint64_t float64_bits_from_float32_bits(std::uint32_t bits) noexcept {
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x80000000u) << 32;
  const std::uint64_t magnitude = bits & kFloat32Magnitude;
  if (magnitude >= kFloat32Inf) return sign | kFloat64Inf | (magnitude << 29);
  if (magnitude >= 0x800000u) return sign | ((magnitude << 29) + (std::uint64_t{1023 - 127} << 52));
  if (magnitude == 0) return sign;
  // Subnormal: magnitude x 2^-149; its leading bit becomes the implicit one.
  const auto top = static_cast<std::uint32_t>(std::bit_width(magnitude)) - 1u;
  const std::uint64_t mantissa = (magnitude << (52u - top)) & 0xFFFFFFFFFFFFFu;
  return sign | (std::uint64_t{1023u - 149u + top} << 52) | mantissa;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_FLOAT_BITS_H_
