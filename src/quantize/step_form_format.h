// The step form (docs/format.md 3.1): a value as q x 2^k, |q| as a token and lane bits. k is from
// kLeastExponent to kBias of the type's FloatFormat.
#ifndef GRADWIRE_QUANTIZE_STEP_FORM_FORMAT_H_
#define GRADWIRE_QUANTIZE_STEP_FORM_FORMAT_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::uint32_t kStepMost = 2047;  // |q|
inline constexpr std::int32_t kStepMostBits = 11;
inline constexpr std::uint32_t kStepTokenMax = 23;
inline constexpr std::uint8_t kStepEscape = 31;

// Scales for which one float32 multiplication by a power of two is exact, for normal values and
// results, so that flush-to-zero does not matter either: at k >= -124 a subnormal is below a
// quarter of the step and a result other than 0 is normal; at k <= 112, 2^(-14 - k) is normal.
inline constexpr std::int32_t kStepFastMin = -124;
inline constexpr std::int32_t kStepFastMax = 112;

// Tokens 1, 3 and 24 to 30 have no meaning.
constexpr bool step_token_exists(std::uint32_t token) noexcept {
  return token <= kStepTokenMax && token != 1 && token != 3;
}

// r(token) for a type with this many mantissa bits: |q| has at most one significant bit more
// (docs/error_bounds.md). From 10 on all types are alike.
constexpr std::array<std::uint8_t, 32> step_lane_bits(std::uint32_t mantissa_bits) noexcept {
  std::array<std::uint8_t, 32> bits{};
  bits[2] = 1;
  for (std::uint32_t token = 4; token <= kStepTokenMax; ++token) {
    bits[token] = static_cast<std::uint8_t>(std::min(token / 2 - 1, mantissa_bits));
  }
  return bits;
}

// Largest |q| of a token that exists.
constexpr std::uint32_t step_token_last(std::uint32_t token) noexcept {
  if (token <= 2) return token / 2;
  const std::uint32_t m = token / 2;
  return (1u << (m - 1)) + ((token % 2) + 1) * (1u << (m - 2)) - 1;
}

// Largest |q| whose |q| 2^k stays below 2^(bias + 1), so is finite in the type; k <= kBias.
template <typename Format>
constexpr std::uint32_t step_finite_most(std::int32_t k) noexcept {
  const std::int32_t bits = Format::kBias + 1 - k;
  return bits < kStepMostBits ? (1u << bits) - 1 : kStepMost;
}

// Float32 bits of 2^n, -126 <= n <= 127.
constexpr float power_of_two(std::int32_t n) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_STEP_FORM_FORMAT_H_
