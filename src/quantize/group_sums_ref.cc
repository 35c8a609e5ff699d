#include "quantize/group_sums.h"
#include "quantize/group_sums_loops.h"

namespace gradwire::internal {

std::uint32_t largest_magnitude_ref(const std::byte* values, std::size_t count) noexcept {
  return loops::largest_magnitude(values, count);
}

float norm_up_ref(const std::byte* values, std::size_t count, std::uint32_t largest) noexcept {
  return loops::norm_up(values, count, largest);
}

float rms_up_ref(const std::byte* values, std::size_t count, std::uint32_t largest,
                 double factor) noexcept {
  return loops::rms_up(values, count, largest, factor);
}

SignMeans sign_means_ref(const std::byte* values, std::size_t count,
                         std::uint32_t largest) noexcept {
  return loops::sign_means(values, count, largest);
}

}  // namespace gradwire::internal
