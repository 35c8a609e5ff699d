// The loops of group_sums.h.
#ifndef GRADWIRE_QUANTIZE_GROUP_SUMS_LOOPS_H_
#define GRADWIRE_QUANTIZE_GROUP_SUMS_LOOPS_H_

#include <algorithm>
#include <bit>

#include "core/always_inline.h"
#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/group_sums.h"

namespace gradwire::internal::loops {

constexpr std::uint32_t kMantissa = 0x7FFFFFu;
constexpr std::int32_t kBias = 127;

// F of a magnitude.
GRADWIRE_ALWAYS_INLINE std::uint32_t field_of(std::uint32_t magnitude) noexcept {
  return std::max(magnitude >> 23, 1u);
}

// The magnitude in units of 2^(A - 127 - 31), cut: its 24 bits at the top of 32 where F = A.
GRADWIRE_ALWAYS_INLINE std::uint32_t aligned(std::uint32_t magnitude, std::uint32_t top) noexcept {
  const std::uint32_t hidden = magnitude > kMantissa ? kMantissa + 1 : 0;
  const std::uint32_t significand = (magnitude & kMantissa) | hidden;
  const std::uint32_t down = std::min(top - field_of(magnitude), 32u);
  return static_cast<std::uint32_t>((std::uint64_t{significand} << 8) >> down);
}

// Sum of squares of the magnitudes in units of 2^(A - 127 - 15), rounded up: 16 bits and one.
// 2^12 squares of at most 2^32 fit 2^44.
GRADWIRE_ALWAYS_INLINE std::uint64_t squares_up(const std::byte* values, std::size_t count,
                                                std::uint32_t top) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = load_le<std::uint32_t>(values + 4 * i) & kFloat32Magnitude;
    const std::uint64_t units = (aligned(magnitude, top) >> 16) + (magnitude != 0);
    sum += units * units;
  }
  return sum;
}

// The least r with r^2 >= x, x < 2^56: one bit after the other.
GRADWIRE_ALWAYS_INLINE std::uint32_t root_up(std::uint64_t x) noexcept {
  std::uint32_t root = 0;  // largest with root^2 < x
  for (std::uint32_t bit = 1u << 28; bit != 0; bit >>= 1) {
    const std::uint64_t next = root + bit;
    if (next * next < x) root += bit;
  }
  return x == 0 ? 0 : root + 1;
}

// x 2^k rounded to float32 once; |k| below 1000.
GRADWIRE_ALWAYS_INLINE float scaled(double x, std::int32_t k) noexcept {
  const auto field = static_cast<std::uint64_t>(k + 1023) << 52;
  return static_cast<float>(x * std::bit_cast<double>(field));
}

GRADWIRE_ALWAYS_INLINE std::uint32_t largest_magnitude(const std::byte* values,
                                                       std::size_t count) noexcept {
  // Magnitudes order like their bit patterns, which are positive as int32.
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude =
        static_cast<std::int32_t>(load_le<std::uint32_t>(values + 4 * i) & kFloat32Magnitude);
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<std::uint32_t>(largest);
}

// The root is below 2^22 + 2: exact as float32.
GRADWIRE_ALWAYS_INLINE float norm_up(const std::byte* values, std::size_t count,
                                     std::uint32_t largest) noexcept {
  const std::uint32_t top = field_of(largest);
  return scaled(root_up(squares_up(values, count, top)),
                static_cast<std::int32_t>(top) - kBias - 15);
}

GRADWIRE_ALWAYS_INLINE float rms_up(const std::byte* values, std::size_t count,
                                    std::uint32_t largest, double factor) noexcept {
  const std::uint32_t top = field_of(largest);
  // In units of 2^-8 of the above: a mean is small beside the largest magnitude.
  const double mean =
      static_cast<double>(squares_up(values, count, top)) * 65536.0 / static_cast<double>(count);
  const std::uint32_t root = root_up(static_cast<std::uint64_t>(factor * factor * mean));
  return scaled(root, static_cast<std::int32_t>(top) - kBias - 23);
}

GRADWIRE_ALWAYS_INLINE SignMeans sign_means(const std::byte* values, std::size_t count,
                                            std::uint32_t largest) noexcept {
  const std::uint32_t top = field_of(largest);
  std::uint64_t sum = 0;  // of all magnitudes, in units of 2^(A - 127 - 31)
  std::uint64_t negative_sum = 0;
  std::uint64_t negatives = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = load_le<std::uint32_t>(values + 4 * i);
    const std::uint32_t magnitude = bits & kFloat32Magnitude;
    const std::uint32_t negative = bits > 0x80000000u;  // -0 is not
    const std::uint32_t units = aligned(magnitude, top);
    sum += units;
    negative_sum += units & (0u - negative);
    negatives += negative;
  }
  const auto mean = [top](std::uint64_t total, std::uint64_t number) {
    if (number == 0) return 0.0f;
    return scaled(static_cast<double>(total) / static_cast<double>(number),
                  static_cast<std::int32_t>(top) - kBias - 31);
  };
  return {mean(sum - negative_sum, count - negatives), mean(negative_sum, negatives)};
}

}  // namespace gradwire::internal::loops

#endif  // GRADWIRE_QUANTIZE_GROUP_SUMS_LOOPS_H_
