#include "quantize/hadamard.h"
#include "quantize/hadamard_loops.h"

namespace gradwire::internal {

void flip_signs_ref(float* values, const std::uint32_t* signs, std::size_t count) noexcept {
  return loops::flip_signs(values, signs, count);
}

void hadamard_ref(float* values, std::size_t count) noexcept {
  return loops::hadamard(values, count);
}

}  // namespace gradwire::internal
