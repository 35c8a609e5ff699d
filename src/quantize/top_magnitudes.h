// The largest magnitudes of a list of float32 values in linear time and without memory for them:
// the k-th largest bit pattern is found in three passes of 11, 10 and 10 bits. Ties are broken by
// order: earlier values first. NaN counts as larger than Inf.
#ifndef GRADWIRE_QUANTIZE_TOP_MAGNITUDES_H_
#define GRADWIRE_QUANTIZE_TOP_MAGNITUDES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/endian.h"
#include "core/float_bits.h"

namespace gradwire::internal {

// Values of which the magnitude is above `threshold`, and the first `ties` of those where it is
// equal.
struct TopMagnitudes {
  std::uint32_t threshold = kFloat32Magnitude;  // none
  std::uint64_t ties = 0;
  std::uint64_t kept = 0;

  // Whether the next value, in the order of the list, is among them.
  bool take(std::uint32_t magnitude) noexcept {
    if (magnitude != threshold) return magnitude > threshold;
    if (ties == 0) return false;
    --ties;
    return true;
  }
};

// ceil(fraction x count), the product rounded to f64; 0 < fraction <= 1.
constexpr std::uint64_t part_of(double fraction, std::uint64_t count) noexcept {
  const double exact = fraction * static_cast<double>(count);
  const auto whole = static_cast<std::uint64_t>(exact);
  return whole + (static_cast<double>(whole) < exact ? 1 : 0);
}

// `wanted` of the values, but all that are not finite, and no zeros. `for_each(visit)` calls
// visit(magnitude) for all values in order, the same at each call.
template <typename ForEach>
TopMagnitudes top_magnitudes(std::uint64_t wanted, ForEach for_each) noexcept {
  TopMagnitudes top;
  std::uint64_t nonzero = 0;
  std::uint64_t infinite = 0;
  std::array<std::uint64_t, 2048> bins{};
  for_each([&](std::uint32_t magnitude) {
    nonzero += magnitude != 0;
    infinite += magnitude >= kFloat32Inf;
    ++bins[magnitude >> 20];
  });
  top.kept = wanted > infinite ? wanted : infinite;
  if (top.kept >= nonzero) {
    top.kept = nonzero;
    top.threshold = 0;  // all that are larger than 0
    return top;
  }
  // The bin with the k-th largest, then the bin in it by the next bits, and again.
  std::uint64_t left = top.kept;
  std::uint32_t prefix = 0;
  for (const unsigned shift : {20u, 10u, 0u}) {
    const unsigned width = shift == 20 ? 11 : 10;
    if (shift != 20) {
      bins.fill(0);
      for_each([&](std::uint32_t magnitude) {
        if (magnitude >> (shift + width) == prefix) ++bins[(magnitude >> shift) & 1023u];
      });
    }
    std::uint32_t bin = (1u << width) - 1;
    while (bins[bin] < left) left -= bins[bin--];
    prefix = (prefix << width) | bin;
  }
  top.threshold = prefix;
  top.ties = left;
  return top;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_TOP_MAGNITUDES_H_
