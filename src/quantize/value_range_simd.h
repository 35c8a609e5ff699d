// Vector twin of value_range_ref: float32 has a kernel, for other types the plain one is called.
#ifndef GRADWIRE_QUANTIZE_VALUE_RANGE_SIMD_H_
#define GRADWIRE_QUANTIZE_VALUE_RANGE_SIMD_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "quantize/value_range_ref.h"

namespace gradwire::internal {

ValueRange value_range_float32(const std::uint32_t* values, std::size_t count) noexcept;

template <typename Format>
ValueRange value_range_simd(const typename Format::Bits* values, std::size_t count) noexcept {
  if constexpr (std::is_same_v<Format, Float32Format>) {
    return value_range_float32(values, count);
  } else {
    return value_range_ref<Format>(values, count);
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_VALUE_RANGE_SIMD_H_
