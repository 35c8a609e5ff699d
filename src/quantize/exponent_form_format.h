// The exponent form (docs/format.md 3.2): the exponent below the group's as a token, then sign and
// mantissa as lane bits and plane.
#ifndef GRADWIRE_QUANTIZE_EXPONENT_FORM_FORMAT_H_
#define GRADWIRE_QUANTIZE_EXPONENT_FORM_FORMAT_H_

#include <array>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::uint32_t kExponentTokenMax = 29;
inline constexpr std::uint8_t kExponentZero = 30;
inline constexpr std::uint8_t kExponentEscape = 31;
// Sign and mantissa bits that go through the coder at most: with 7 bits of code they fill a word.
inline constexpr std::uint32_t kMaxExponentLaneBits = 9;
inline constexpr std::uint32_t kMaxPlaneBytes = 6;
// Token 0 stands this far above floor(log2 RMS).
inline constexpr std::int32_t kExponentHeadroom = 4;

// Mantissa bits kept, and how many of them lie in the plane.
struct MantissaSplit {
  std::uint32_t mantissa = 0;     // M
  std::uint32_t plane_bytes = 0;  // P = 8 plane_bytes
  constexpr std::uint32_t lane_bits() const noexcept { return 1 + mantissa - 8 * plane_bytes; }
};

// The encoder's choice: the narrowest plane.
constexpr MantissaSplit split_mantissa(std::uint32_t mantissa) noexcept {
  const std::uint32_t most = kMaxExponentLaneBits - 1;
  return {mantissa, mantissa > most ? (mantissa - most + 7) / 8 : 0};
}

// r(token).
constexpr std::array<std::uint8_t, 32> exponent_lane_bits(MantissaSplit split) noexcept {
  std::array<std::uint8_t, 32> bits{};
  for (std::uint32_t token = 0; token <= kExponentTokenMax; ++token) {
    bits[token] = static_cast<std::uint8_t>(split.lane_bits());
  }
  bits[kExponentZero] = 1;
  return bits;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_EXPONENT_FORM_FORMAT_H_
