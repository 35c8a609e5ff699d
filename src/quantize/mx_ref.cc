#include "quantize/mx.h"
#include "quantize/mx_loops.h"

namespace gradwire::internal {

std::uint8_t mx_scale(std::uint32_t largest, const MxElement& element) noexcept {
  if (largest >= kFloat32Inf) return kMxRawScale;
  const std::int32_t scale = static_cast<std::int32_t>(largest >> 23) - element.top;
  return static_cast<std::uint8_t>(scale < 0 ? 0 : scale);
}

void mx_quantize_ref(const std::byte* values, std::size_t count, std::uint8_t scale,
                     const MxElement& element, std::uint8_t* codes) noexcept {
  return loops::mx_quantize(values, count, scale, element, codes);
}

bool mx_dequantize_ref(const std::uint8_t* codes, std::size_t count, std::uint8_t scale,
                       const MxElement& element, std::byte* values) noexcept {
  return loops::mx_dequantize(codes, count, scale, element, values);
}

}  // namespace gradwire::internal
