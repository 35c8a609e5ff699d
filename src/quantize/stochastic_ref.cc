#include "quantize/stochastic_ref.h"

#include <algorithm>
#include <bit>

#include "core/counter_rng.h"

namespace gradwire::internal {
namespace {

// number x 2^-down to nearest even, for numbers below 2^63.
std::uint64_t round_down(std::uint64_t number, std::int32_t down) noexcept {
  if (down <= 0) return number << -down;
  if (down > 63) return 0;  // less than half
  const std::uint64_t odd = (number >> down) & 1;
  return (number + ((std::uint64_t{1} << (down - 1)) - 1) + odd) >> down;
}

// The pattern of q x 2^k, 1 <= q <= 2048; that of Inf or more if it is too large. The type holds it
// exactly: values are multiples of the grid already where q has more bits than the type.
template <typename Format>
typename Format::Wide grid_point(std::uint32_t q, std::int32_t k) noexcept {
  using Wide = typename Format::Wide;
  constexpr auto kBits = static_cast<std::int32_t>(Format::kMantissaBits);
  const std::int32_t top = static_cast<std::int32_t>(std::bit_width(q)) - 1;
  const std::int32_t field = top + k + Format::kBias;
  if (field >= Format::kExponentMax) return Format::kInfinity;
  // Subnormal: in units of the type's smallest number.
  if (field <= 0) return static_cast<Wide>(q) << (k - (1 - Format::kBias - kBits));
  const Wide mantissa =
      top <= kBits ? static_cast<Wide>(q) << (kBits - top) : static_cast<Wide>(q) >> (top - kBits);
  return (static_cast<Wide>(field) << Format::kMantissaBits) | (mantissa & Format::kMantissaMask);
}

}  // namespace

template <typename Format>
bool round_to_step_ref(const typename Format::Bits* values, std::uint32_t count, StepGrid grid,
                       NoisePlace place, typename Format::Bits* rounded) noexcept {
  using Bits = typename Format::Bits;
  using Wide = typename Format::Wide;
  constexpr auto kBits = static_cast<std::int32_t>(Format::kMantissaBits);
  Wide any = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    const auto field = static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
    const std::uint64_t significand =
        (magnitude & Format::kMantissaMask) + (field > 0 ? Format::kHidden : 0);
    // |x| = significand x 2^exponent, below 2^(exponent + width).
    const std::int32_t exponent = std::max(field, 1) - Format::kBias - kBits;
    const std::int32_t width = exponent + static_cast<std::int32_t>(std::bit_width(significand));
    Wide result = values[i];
    if (magnitude < Format::kInfinity && width <= grid.k + 11) {
      // t < 2^27, and so is the shift upwards of the significand.
      const auto t = static_cast<std::int64_t>(round_down(significand, grid.k - 16 - exponent));
      const auto noise = static_cast<std::int64_t>(noise16(place.key, place.index + i));
      const bool negative = (values[i] & Format::kSign) != 0;
      const std::int64_t q = ((negative ? -t : t) + noise) >> 16;
      // Both zeros have width = exponent, below every step.
      const bool filtered = grid.filter && width <= grid.k;
      const auto size = static_cast<std::uint32_t>(q < 0 ? -q : q);
      const Wide point = size == 0 || filtered ? 0 : grid_point<Format>(size, grid.k);
      if (point < Format::kInfinity) result = (q < 0 && point != 0 ? Format::kSign : 0) | point;
    }
    any |= result;
    rounded[i] = static_cast<Bits>(result);
  }
  return any != 0;
}

template <typename Format>
void round_to_mantissa_ref(const typename Format::Bits* values, std::uint32_t count,
                           std::uint32_t mantissa, NoisePlace place,
                           typename Format::Bits* rounded) noexcept {
  using Bits = typename Format::Bits;
  using Wide = typename Format::Wide;
  const auto drop =
      static_cast<std::int32_t>(Format::kMantissaBits) - static_cast<std::int32_t>(mantissa);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    Wide result = values[i];
    if (drop > 0 && magnitude >= Format::kHidden && magnitude < Format::kInfinity) {
      // Patterns of one binade, its end included, are in proportion to the values. Less than 16
      // bits to drop leave t at most 63 bits: float64 drops 36 at least, the others have 32.
      const std::uint64_t t = round_down(magnitude, drop - 16);
      const std::uint64_t point = ((t + noise16(place.key, place.index + i)) >> 16) << drop;
      if (point < Format::kInfinity)
        result = (values[i] & Format::kSign) | static_cast<Wide>(point);
    }
    rounded[i] = static_cast<Bits>(result);
  }
}

#define GRADWIRE_INSTANTIATE(Format)                                                             \
  template bool round_to_step_ref<Format>(const Format::Bits*, std::uint32_t, StepGrid,          \
                                          NoisePlace, Format::Bits*) noexcept;                   \
  template void round_to_mantissa_ref<Format>(const Format::Bits*, std::uint32_t, std::uint32_t, \
                                              NoisePlace, Format::Bits*) noexcept
GRADWIRE_INSTANTIATE(Float32Format);
GRADWIRE_INSTANTIATE(Float64Format);
GRADWIRE_INSTANTIATE(Float16Format);
GRADWIRE_INSTANTIATE(BFloat16Format);
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire::internal
