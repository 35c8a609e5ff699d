// float16 and bfloat16 as float32, exactly: what the kernels for float32 take instead.
#ifndef GRADWIRE_QUANTIZE_HALF_FLOAT_H_
#define GRADWIRE_QUANTIZE_HALF_FLOAT_H_

#include <cstddef>
#include <cstdint>

#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/float_format.h"

namespace gradwire::internal {

template <typename Format>
inline constexpr bool kIsHalf = sizeof(typename Format::Bits) == sizeof(std::uint16_t);

template <typename Format>
constexpr std::uint32_t widen_half(std::uint16_t bits) noexcept {
  constexpr bool kIsFloat16 = Format::kMantissaBits == Float16Format::kMantissaBits;
  return kIsFloat16 ? float32_bits_from_float16(bits) : float32_bits_from_bfloat16(bits);
}
// The inverse, for NaN too.
template <typename Format>
constexpr std::uint16_t narrow_half(std::uint32_t bits) noexcept {
  constexpr bool kIsFloat16 = Format::kMantissaBits == Float16Format::kMantissaBits;
  return kIsFloat16 ? exact_float16_from_float32_bits(bits)
                    : static_cast<std::uint16_t>(bits >> 16);
}

// Values of a half type, which need no alignment, to float32 and back.
template <typename Format>
void widen_halves(const std::byte* from, std::size_t count, std::uint32_t* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = widen_half<Format>(load_le<std::uint16_t>(from + sizeof(std::uint16_t) * i));
  }
}
template <typename Format>
void narrow_halves(const std::uint32_t* from, std::size_t count, std::byte* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store_le(to + sizeof(std::uint16_t) * i, narrow_half<Format>(from[i]));
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_HALF_FLOAT_H_
