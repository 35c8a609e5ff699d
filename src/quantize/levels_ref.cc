#include "quantize/levels.h"
#include "quantize/levels_loops.h"

namespace gradwire::internal {

void levels_quantize_nearest_ref(const std::byte* values, std::size_t count, float scale,
                                 unsigned bits, std::int8_t* integers) noexcept {
  return loops::levels_quantize_nearest(values, count, scale, bits, integers);
}

void levels_quantize_stochastic_ref(const std::byte* values, std::size_t count, float scale,
                                    unsigned bits, const std::uint16_t* noise,
                                    std::int8_t* integers) noexcept {
  return loops::levels_quantize_stochastic(values, count, scale, bits, noise, integers);
}

bool levels_dequantize_ref(const std::uint8_t* patterns, std::size_t count, float unit,
                           unsigned bits, std::byte* values) noexcept {
  return loops::levels_dequantize(patterns, count, unit, bits, values);
}

}  // namespace gradwire::internal
