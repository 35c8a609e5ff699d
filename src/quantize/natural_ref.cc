#include "quantize/natural.h"
#include "quantize/natural_loops.h"

namespace gradwire::internal {

std::size_t natural_quantize_ref(const std::byte* values, std::size_t count,
                                 const std::uint16_t* noise, std::uint16_t* codes) noexcept {
  return loops::natural_quantize(values, count, noise, codes);
}

std::size_t natural_dequantize_ref(const std::uint16_t* codes, std::size_t count,
                                   std::byte* values) noexcept {
  return loops::natural_dequantize(codes, count, values);
}

}  // namespace gradwire::internal
