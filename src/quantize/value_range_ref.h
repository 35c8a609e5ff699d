// Scales that are not the RMS (docs/format.md section 8): range and largest magnitude of a group or
// of a whole part, and floor(log2(X s)) of them, in integers.
#ifndef GRADWIRE_QUANTIZE_VALUE_RANGE_REF_H_
#define GRADWIRE_QUANTIZE_VALUE_RANGE_REF_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "quantize/float_format.h"
#include "quantize/group_scale_ref.h"

namespace gradwire::internal {

// Extremes of values: finite ones as numbers that order like them, the magnitude's bit pattern with
// the sign of the value (0 for both zeros). Ranges of pieces add up to that of the whole.
struct ValueRange {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  bool nonfinite = false;      // some value is NaN or Inf
  bool negative_zero = false;  // some value is -0

  bool finite() const noexcept { return lowest <= highest; }
  bool zero() const noexcept { return lowest == 0 && highest == 0 && !nonfinite; }
  void add(const ValueRange& other) noexcept {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
    nonfinite = nonfinite || other.nonfinite;
    negative_zero = negative_zero || other.negative_zero;
  }
};

template <typename Format>
ValueRange value_range_ref(const typename Format::Bits* values, std::size_t count) noexcept;

// A positive number as significand x 2^exponent, bit 63 of the significand set. Exact.
struct ScaleFactor {
  std::uint64_t significand = 0;
  std::int32_t exponent = 0;
};
// x is positive, normal and finite.
ScaleFactor exact_factor(double x) noexcept;

// k = floor(log2(X s)) for s = max - min, s = largest magnitude, and s = 1. `range` is that of the
// values; without a finite one there is no k, for s = 0 it vanishes.
template <typename Format>
GroupScale scale_of_range(const ValueRange& range, ScaleFactor x) noexcept;
template <typename Format>
GroupScale scale_of_largest(const ValueRange& range, ScaleFactor x) noexcept;
GroupScale scale_of_factor(const ValueRange& range, ScaleFactor x) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_VALUE_RANGE_REF_H_
