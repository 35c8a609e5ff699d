// Uniform levels: q = x m / scale as a small integer from -m to m, and back (docs/format.md 4.2 and
// 8). What `block`, `qsgd`, `terngrad`, `hadamard` and `cocktail` share; they differ in the scale.
// Pure loops without errors or allocation; float32 values need no alignment; the floating-point
// environment is that of FpEnvironment.
#ifndef GRADWIRE_QUANTIZE_LEVELS_H_
#define GRADWIRE_QUANTIZE_LEVELS_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

// m of integers of that many bits.
constexpr std::int32_t most_level(unsigned bits) noexcept {
  return (std::int32_t{1} << (bits - 1)) - 1;
}

// Rounded to nearest. `scale`: at least 2^-110 and at least every magnitude; bits 2 to 8.
void levels_quantize_nearest_ref(const std::byte* values, std::size_t count, float scale,
                                 unsigned bits, std::int8_t* integers) noexcept;
// Rounded up with the probability of the fraction; `noise`: uniform, one per value.
void levels_quantize_stochastic_ref(const std::byte* values, std::size_t count, float scale,
                                    unsigned bits, const std::uint16_t* noise,
                                    std::int8_t* integers) noexcept;

// Values of `count` unsigned `bits`-bit patterns of integers: q x `unit`. False, with `values`
// unspecified, if one of the integers is below -m.
bool levels_dequantize_ref(const std::uint8_t* patterns, std::size_t count, float unit,
                           unsigned bits, std::byte* values) noexcept;

// The same, compiled for each vector target; src/quantize/baselines_simd.cc.
void levels_quantize_stochastic_simd(const std::byte* values, std::size_t count, float scale,
                                     unsigned bits, const std::uint16_t* noise,
                                     std::int8_t* integers) noexcept;
bool levels_dequantize_simd(const std::uint8_t* patterns, std::size_t count, float unit,
                            unsigned bits, std::byte* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_LEVELS_H_
