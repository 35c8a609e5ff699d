// The loops of mx.h.
#ifndef GRADWIRE_QUANTIZE_MX_LOOPS_H_
#define GRADWIRE_QUANTIZE_MX_LOOPS_H_

#include "core/always_inline.h"
#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/mx.h"

namespace gradwire::internal::loops {

constexpr std::int32_t kFloat32Bias = 127;

// 2^k for k from -127 on: below the normal numbers one bit of the mantissa is the only one.
GRADWIRE_ALWAYS_INLINE float power_of_two(std::int32_t k) noexcept {
  return float32_from_bits(k >= -126 ? static_cast<std::uint32_t>(k + kFloat32Bias) << 23
                                     : std::uint32_t{1} << 22);
}

// y = |x| / 2^(scale - 127) is exact, or so small that it rounds to zero. Where the element format
// has a unit in the last place Q = 2^k, y + 2^(23 + k) lies where float32 has the same unit, so the
// addition rounds to nearest even. The result, a float32 with M mantissa bits, becomes the code by
// moving the bias; for a subnormal one, 2^(1 - bias) is added first, so that it has its field.
GRADWIRE_ALWAYS_INLINE void mx_quantize(const std::byte* __restrict values, std::size_t count,
                                        std::uint8_t scale, const MxElement& format,
                                        std::uint8_t* __restrict codes) noexcept {
  const MxElement element = format;  // a copy: no store can change it
  const unsigned down = 23 - element.mantissa_bits;
  const float factor = power_of_two(kFloat32Bias - scale);
  const std::uint32_t least_field = static_cast<std::uint32_t>(kFloat32Bias + 1 - element.bias);
  const std::uint32_t least_normal = least_field << 23;
  const std::uint32_t bias = (least_field - 1) << element.mantissa_bits;
  const std::uint32_t largest = element.largest;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = load_le<std::uint32_t>(values + 4 * i);
    const float y = float32_from_bits(bits & kFloat32Magnitude) * factor;
    const std::uint32_t subnormal = less_mask(float32_bits(y), least_normal);
    const std::uint32_t field = select_bits(subnormal, least_normal, float32_bits(y)) & kFloat32Inf;
    const float magic = float32_from_bits(field + (down << 23));
    const float rounded = (y + magic) - magic;
    const float moved = rounded + float32_from_bits(subnormal & least_normal);
    const std::uint32_t code =
        (float32_bits(moved) >> down) - bias - (subnormal & (1u << element.mantissa_bits));
    const std::uint32_t saturated = select_bits(less_mask(largest, code), largest, code);
    codes[i] = static_cast<std::uint8_t>(saturated | ((bits >> 31) << (element.bits - 1)));
  }
}

GRADWIRE_ALWAYS_INLINE bool mx_dequantize(const std::uint8_t* __restrict codes, std::size_t count,
                                          std::uint8_t scale, const MxElement& format,
                                          std::byte* __restrict values) noexcept {
  const MxElement element = format;  // a copy: no store can change it
  const unsigned down = 23 - element.mantissa_bits;
  const float factor = power_of_two(scale - kFloat32Bias);
  const std::uint32_t sign = element.sign();
  const auto least = static_cast<std::uint32_t>(kFloat32Bias + 1 - element.bias) << 23;
  const std::uint32_t bias = static_cast<std::uint32_t>(kFloat32Bias - element.bias) << 23;
  std::uint32_t forbidden = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = codes[i] & (sign - 1u);
    forbidden |= less_mask(element.largest, magnitude);
    // A subnormal gets the field of the least normal number, whose value is taken off again.
    const std::uint32_t subnormal = less_mask(magnitude, 1u << element.mantissa_bits);
    const std::uint32_t moved = (magnitude << down) + bias + (subnormal & (1u << 23));
    const float value = float32_from_bits(moved) - float32_from_bits(subnormal & least);
    const std::uint32_t bits = float32_bits(value * factor);
    store_le(values + 4 * i, bits | ((codes[i] & sign) << (32 - element.bits)));
  }
  return forbidden == 0;
}

}  // namespace gradwire::internal::loops

#endif  // GRADWIRE_QUANTIZE_MX_LOOPS_H_
