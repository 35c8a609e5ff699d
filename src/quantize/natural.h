// Kernels of codec `natural` (docs/format.md 4.3): float32 values to signed powers of two and back.
// Pure loops without errors or allocation over unaligned values; the ranges do not overlap.
#ifndef GRADWIRE_QUANTIZE_NATURAL_H_
#define GRADWIRE_QUANTIZE_NATURAL_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

inline constexpr unsigned kNaturalBits = 9;
inline constexpr std::uint16_t kNaturalRaw = 255;  // as exponent field: the value stands elsewhere

// A code for each of `count` values, rounded to one of the two powers of two around it (0 counts as
// one) so that its expectation is the value; `noise`: uniform, one per value. NaN, Inf and
// magnitudes above 2^127 get kNaturalRaw. Returns the number of these.
std::size_t natural_quantize_ref(const std::byte* values, std::size_t count,
                                 const std::uint16_t* noise, std::uint16_t* codes) noexcept;

// The values of `count` codes; those of kNaturalRaw are Inf. Returns the number of these.
std::size_t natural_dequantize_ref(const std::uint16_t* codes, std::size_t count,
                                   std::byte* values) noexcept;

constexpr bool is_natural_raw(std::uint16_t code) noexcept { return (code & 0xFFu) == kNaturalRaw; }

// The same, compiled for each vector target; src/quantize/baselines_simd.cc.
std::size_t natural_quantize_simd(const std::byte* values, std::size_t count,
                                  const std::uint16_t* noise, std::uint16_t* codes) noexcept;
std::size_t natural_dequantize_simd(const std::uint16_t* codes, std::size_t count,
                                    std::byte* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_NATURAL_H_
