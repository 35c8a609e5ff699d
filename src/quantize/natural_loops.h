// The loops of natural.h.
#ifndef GRADWIRE_QUANTIZE_NATURAL_LOOPS_H_
#define GRADWIRE_QUANTIZE_NATURAL_LOOPS_H_

#include "core/always_inline.h"
#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/natural.h"

namespace gradwire::internal::loops {

// A float32 is 2^e (1 + m 2^-23), or m 2^-149 below the normal numbers: in both cases m 2^-23 is
// how far the value lies between two neighbours among 0 and the powers of two, and a carry out of
// the mantissa makes the lower one the upper one. Adding uniform noise to the mantissa therefore
// rounds up with probability m 2^-23. 16 bits of noise: m counts in units of 2^-16, and the
// addend 64, half of that unit in bits of m, rounds it to the nearest. So the probability is wrong
// by 2^-17 at most, and a power of two (m = 0) never moves.
GRADWIRE_ALWAYS_INLINE std::size_t natural_quantize(const std::byte* __restrict values,
                                                    std::size_t count,
                                                    const std::uint16_t* __restrict noise,
                                                    std::uint16_t* __restrict codes) noexcept {
  constexpr std::uint32_t kLargest = 254u << 23;  // 2^127
  std::uint32_t raw_values = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = load_le<std::uint32_t>(values + 4 * i);
    const std::uint32_t magnitude = bits & kFloat32Magnitude;
    const std::uint32_t rounded = (magnitude + (std::uint32_t{noise[i]} << 7) + 64u) >> 23;
    const std::uint32_t raw = less_mask(kLargest, magnitude);
    raw_values += raw & 1u;
    codes[i] = static_cast<std::uint16_t>(((bits >> 23) & 0x100u) |
                                          select_bits(raw, kNaturalRaw, rounded));
  }
  return raw_values;
}

GRADWIRE_ALWAYS_INLINE std::size_t natural_dequantize(const std::uint16_t* __restrict codes,
                                                      std::size_t count,
                                                      std::byte* __restrict values) noexcept {
  std::uint32_t raw_values = 0;
  for (std::size_t i = 0; i < count; ++i) {
    raw_values += static_cast<std::uint32_t>(is_natural_raw(codes[i]));
    store_le(values + 4 * i, std::uint32_t{codes[i]} << 23);  // sign and field have float32's order
  }
  return raw_values;
}

}  // namespace gradwire::internal::loops

#endif  // GRADWIRE_QUANTIZE_NATURAL_LOOPS_H_
