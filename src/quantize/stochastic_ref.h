// Stochastic rounding (docs/format.md section 8): values to points of a grid that then go through
// the step form or the exponent form unchanged. A value goes up with the probability of its
// fraction, by noise that depends on its place alone.
#ifndef GRADWIRE_QUANTIZE_STOCHASTIC_REF_H_
#define GRADWIRE_QUANTIZE_STOCHASTIC_REF_H_

#include <cstdint>

#include "quantize/float_format.h"

namespace gradwire::internal {

// The noise of values that lie one after the other in a parameter.
struct NoisePlace {
  std::uint64_t key = 0;    // noise_key()
  std::uint64_t index = 0;  // of the first value, inside its parameter
};

// The grid q x 2^k. `filter`: what is smaller than a step becomes 0.
struct StepGrid {
  std::int32_t k = 0;  // as the step form takes it for the type
  bool filter = false;
};

// Values that are not finite or have |x| >= 2^(k + 11) stay as they are. `rounded` may be `values`.
// False if all results are +0.
template <typename Format>
bool round_to_step_ref(const typename Format::Bits* values, std::uint32_t count, StepGrid grid,
                       NoisePlace place, typename Format::Bits* rounded) noexcept;

// The grid of normal numbers with `mantissa` mantissa bits, from 1 on. Zeros, subnormals, values
// that are not finite or would become Inf stay as they are.
template <typename Format>
void round_to_mantissa_ref(const typename Format::Bits* values, std::uint32_t count,
                           std::uint32_t mantissa, NoisePlace place,
                           typename Format::Bits* rounded) noexcept;

#define GRADWIRE_DECLARE(Format)                                                               \
  extern template bool round_to_step_ref<Format>(const Format::Bits*, std::uint32_t, StepGrid, \
                                                 NoisePlace, Format::Bits*) noexcept;          \
  extern template void round_to_mantissa_ref<Format>(                                          \
      const Format::Bits*, std::uint32_t, std::uint32_t, NoisePlace, Format::Bits*) noexcept
GRADWIRE_DECLARE(Float32Format);
GRADWIRE_DECLARE(Float64Format);
GRADWIRE_DECLARE(Float16Format);
GRADWIRE_DECLARE(BFloat16Format);
#undef GRADWIRE_DECLARE

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_STOCHASTIC_REF_H_
