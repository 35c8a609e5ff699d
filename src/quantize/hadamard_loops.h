// The loops of hadamard.h.
#ifndef GRADWIRE_QUANTIZE_HADAMARD_LOOPS_H_
#define GRADWIRE_QUANTIZE_HADAMARD_LOOPS_H_

#include "core/always_inline.h"
#include "core/float_bits.h"
#include "quantize/hadamard.h"

namespace gradwire::internal::loops {

GRADWIRE_ALWAYS_INLINE void flip_signs(float* __restrict values,
                                       const std::uint32_t* __restrict signs,
                                       std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = float32_from_bits(float32_bits(values[i]) ^ signs[i]);
  }
}

GRADWIRE_ALWAYS_INLINE void hadamard(float* values, std::size_t count) noexcept {
  for (std::size_t half = 1; half < count; half *= 2) {
    for (std::size_t first = 0; first < count; first += 2 * half) {
      float* __restrict const low = values + first;
      float* __restrict const high = low + half;
      for (std::size_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
}

}  // namespace gradwire::internal::loops

#endif  // GRADWIRE_QUANTIZE_HADAMARD_LOOPS_H_
