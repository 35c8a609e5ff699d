#include "quantize/value_range_ref.h"

#include <bit>

namespace gradwire::internal {
namespace {

// A finite magnitude as significand x 2^exponent, the exponent that of its last place.
template <typename Format>
struct Magnitude {
  explicit Magnitude(std::int64_t pattern) noexcept {
    const auto bits = static_cast<std::uint64_t>(pattern < 0 ? -pattern : pattern);
    const auto field = static_cast<std::int32_t>(bits >> Format::kMantissaBits);
    significand = (bits & Format::kMantissaMask) + (field > 0 ? Format::kHidden : 0);
    exponent =
        std::max(field, 1) - Format::kBias - static_cast<std::int32_t>(Format::kMantissaBits);
  }
  std::uint64_t significand;
  std::int32_t exponent;
};

// Upper half of the product, by the schoolbook in halves of 32 bits.
std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kLow = 0xFFFFFFFFu;
  const std::uint64_t low = (a & kLow) * (b & kLow);
  const std::uint64_t first = (a >> 32) * (b & kLow) + (low >> 32);
  const std::uint64_t second = (a & kLow) * (b >> 32) + (first & kLow);
  return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
}

// floor(log2(x number 2^exponent)), exact: both significands are in [2^63, 2^64), so the logarithm
// of their product is 126 or 127, and the top bit of the product says which.
GroupScale scale_of_product(ScaleFactor x, std::uint64_t number, std::int32_t exponent) noexcept {
  GroupScale scale;
  scale.finite = true;
  scale.vanishes = number == 0;
  if (scale.vanishes) return scale;
  const int up = std::countl_zero(number);
  const std::uint64_t high = multiply_high(x.significand, number << up);
  scale.exponent = x.exponent + exponent - up + 126 + static_cast<std::int32_t>(high >> 63);
  return scale;
}

// What all scales have in common; false if there is nothing left to say.
bool has_scale(const ValueRange& range, GroupScale* scale) noexcept {
  scale->zero = range.zero();
  scale->negative_zero = scale->zero && range.negative_zero;
  return !scale->zero && range.finite();
}

}  // namespace

template <typename Format>
ValueRange value_range_ref(const typename Format::Bits* values, std::size_t count) noexcept {
  ValueRange range;
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int64_t>(values[i] & Format::kMagnitude);
    const bool negative = (values[i] & Format::kSign) != 0;
    if (magnitude >= static_cast<std::int64_t>(Format::kInfinity)) {
      range.nonfinite = true;
      continue;
    }
    range.negative_zero = range.negative_zero || (negative && magnitude == 0);
    const std::int64_t ordered = negative ? -magnitude : magnitude;
    range.lowest = std::min(range.lowest, ordered);
    range.highest = std::max(range.highest, ordered);
  }
  return range;
}

ScaleFactor exact_factor(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // 1.m x 2^(field - 1023), the leading one moved from bit 52 to bit 63.
  return {(bits << 11) | (std::uint64_t{1} << 63),
          static_cast<std::int32_t>(bits >> 52) - 1023 - 63};
}

// R in units of 2^-up of the last place of the larger magnitude, up = 61 - B: the larger one is
// then below 2^62 and the sum or difference below 2^63. The smaller one is cut, downwards if it is
// added and upwards if it is subtracted, so that R is never above max - min. Where more than `up`
// bits are cut the smaller one is below 2^-9 of the larger, so that R is not 0 by cutting.
template <typename Format>
GroupScale scale_of_range(const ValueRange& range, ScaleFactor x) noexcept {
  GroupScale scale;
  if (!has_scale(range, &scale)) return scale;
  constexpr auto kUp = static_cast<std::int32_t>(61 - Format::kMantissaBits);
  Magnitude<Format> larger(range.highest);
  Magnitude<Format> smaller(range.lowest);
  const std::int64_t high = range.highest < 0 ? -range.highest : range.highest;
  const std::int64_t low = range.lowest < 0 ? -range.lowest : range.lowest;
  if (high < low) std::swap(larger, smaller);
  const bool adds = range.highest >= 0 && range.lowest <= 0;
  const std::int32_t shift = kUp - (larger.exponent - smaller.exponent);
  const std::uint64_t whole = larger.significand << kUp;
  std::uint64_t part = 0;
  bool cut = smaller.significand != 0;
  if (shift >= 0) {
    part = smaller.significand << shift;
    cut = false;
  } else if (shift > -64) {
    part = smaller.significand >> -shift;
    cut = (part << -shift) != smaller.significand;
  }
  const std::uint64_t number = adds ? whole + part : whole - part - (cut ? 1 : 0);
  return scale_of_product(x, number, larger.exponent - kUp);
}

template <typename Format>
GroupScale scale_of_largest(const ValueRange& range, ScaleFactor x) noexcept {
  GroupScale scale;
  if (!has_scale(range, &scale)) return scale;
  // Negated magnitudes: there is no positive number without its negative.
  const Magnitude<Format> largest(std::min(range.lowest, -range.highest));
  return scale_of_product(x, largest.significand, largest.exponent);
}

GroupScale scale_of_factor(const ValueRange& range, ScaleFactor x) noexcept {
  GroupScale scale;
  if (!has_scale(range, &scale)) return scale;
  return scale_of_product(x, 1, 0);
}

#define GRADWIRE_INSTANTIATE(Format)                                                      \
  template ValueRange value_range_ref<Format>(const Format::Bits*, std::size_t) noexcept; \
  template GroupScale scale_of_range<Format>(const ValueRange&, ScaleFactor) noexcept;    \
  template GroupScale scale_of_largest<Format>(const ValueRange&, ScaleFactor) noexcept
GRADWIRE_INSTANTIATE(Float32Format);
GRADWIRE_INSTANTIATE(Float64Format);
GRADWIRE_INSTANTIATE(Float16Format);
GRADWIRE_INSTANTIATE(BFloat16Format);
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire::internal
