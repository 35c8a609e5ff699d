#include "quantize/hadamard.h"

#include "core/float_bits.h"

namespace gradwire::internal {

void flip_signs_ref(float* __restrict values, const std::uint32_t* __restrict signs,
                    std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = float32_from_bits(float32_bits(values[i]) ^ signs[i]);
  }
}

void hadamard_ref(float* values, std::size_t count) noexcept {
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

}  // namespace gradwire::internal
