// Vector twins of stochastic_ref: same results, bit for bit. float32 has kernels, for other types
// the plain ones are called. Need round-to-nearest.
#ifndef GRADWIRE_QUANTIZE_STOCHASTIC_SIMD_H_
#define GRADWIRE_QUANTIZE_STOCHASTIC_SIMD_H_

#include <cstdint>
#include <type_traits>

#include "quantize/stochastic_ref.h"

namespace gradwire::internal {

bool round_to_step_float32(const std::uint32_t* values, std::uint32_t count, StepGrid grid,
                           NoisePlace place, std::uint32_t* rounded) noexcept;
void round_to_mantissa_float32(const std::uint32_t* values, std::uint32_t count,
                               std::uint32_t mantissa, NoisePlace place,
                               std::uint32_t* rounded) noexcept;

template <typename Format>
bool round_to_step_simd(const typename Format::Bits* values, std::uint32_t count, StepGrid grid,
                        NoisePlace place, typename Format::Bits* rounded) noexcept {
  if constexpr (std::is_same_v<Format, Float32Format>) {
    return round_to_step_float32(values, count, grid, place, rounded);
  } else {
    return round_to_step_ref<Format>(values, count, grid, place, rounded);
  }
}

template <typename Format>
void round_to_mantissa_simd(const typename Format::Bits* values, std::uint32_t count,
                            std::uint32_t mantissa, NoisePlace place,
                            typename Format::Bits* rounded) noexcept {
  if constexpr (std::is_same_v<Format, Float32Format>) {
    round_to_mantissa_float32(values, count, mantissa, place, rounded);
  } else {
    round_to_mantissa_ref<Format>(values, count, mantissa, place, rounded);
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_STOCHASTIC_SIMD_H_
