// The element formats of OCP Microscaling (docs/format.md 4.5): a scale 2^(code - 127) for 32
// values and a small floating-point number for each.
#ifndef GRADWIRE_QUANTIZE_MX_FORMAT_H_
#define GRADWIRE_QUANTIZE_MX_FORMAT_H_

#include <cstdint>

namespace gradwire::internal {

inline constexpr std::uint8_t kMxRawScale = 255;  // E8M0's NaN

struct MxElement {
  unsigned bits = 0;           // of a code
  unsigned mantissa_bits = 0;  // M
  std::int32_t bias = 0;
  std::int32_t top = 0;      // exponent of the largest normal numbers
  std::uint8_t largest = 0;  // code of the largest magnitude; what is above is Inf or NaN

  constexpr std::uint8_t sign() const noexcept {
    return static_cast<std::uint8_t>(1u << (bits - 1));
  }
};

inline constexpr MxElement kE4M3{8, 3, 7, 8, 0x7E};    // up to 448
inline constexpr MxElement kE5M2{8, 2, 15, 15, 0x7B};  // up to 57344
inline constexpr MxElement kE2M1{4, 1, 1, 2, 0x7};     // up to 6

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_MX_FORMAT_H_
