// The scale of a group (docs/format.md section 8): floor(log2(X RMS)) in integers, so that no
// order of summation and no rounding mode can change it.
#ifndef GRADWIRE_QUANTIZE_GROUP_SCALE_REF_H_
#define GRADWIRE_QUANTIZE_GROUP_SCALE_REF_H_

#include <cstdint>

#include "quantize/float_format.h"

namespace gradwire::internal {

inline constexpr std::uint32_t kMaxGroup = 4096;

struct GroupScale {
  bool zero = false;           // every value is +0 or -0
  bool negative_zero = false;  // zero, with a -0 among them
  bool finite = false;         // some value is finite; else there is no k
  bool vanishes = false;       // y = 0, the mean square is too small to be seen: no k either
  std::int32_t exponent = 0;   // k
};

// floor(X^2 2^28), X^2 rounded to double once; 2^-8 <= x <= 8.
std::uint64_t scale_factor(double x) noexcept;

// S and c of section 8, which add up where A is the same. Exact up to 2^42 values.
struct SquareSum {
  std::uint64_t sum = 0;     // of s^2
  std::uint64_t finite = 0;  // values counted

  void add(const SquareSum& other) noexcept {
    sum += other.sum;
    finite += other.finite;
  }
};
// `top` is A, the largest exponent field of the values that are finite, at least 1.
template <typename Format>
SquareSum square_sum_ref(const typename Format::Bits* values, std::uint32_t count,
                         std::int32_t top) noexcept;

// k from S, c (at least 1) and the unbiased A: y and j of section 8.
GroupScale scale_from_squares(std::uint64_t sum, std::uint64_t count, std::int32_t top,
                              std::uint64_t factor) noexcept;

// k of `count` values, 1 <= count <= kMaxGroup.
template <typename Format>
GroupScale group_scale_ref(const typename Format::Bits* values, std::uint32_t count,
                           std::uint64_t factor) noexcept;

extern template SquareSum square_sum_ref<Float32Format>(const std::uint32_t*, std::uint32_t,
                                                        std::int32_t) noexcept;
extern template SquareSum square_sum_ref<Float64Format>(const std::uint64_t*, std::uint32_t,
                                                        std::int32_t) noexcept;
extern template SquareSum square_sum_ref<Float16Format>(const std::uint16_t*, std::uint32_t,
                                                        std::int32_t) noexcept;
extern template SquareSum square_sum_ref<BFloat16Format>(const std::uint16_t*, std::uint32_t,
                                                         std::int32_t) noexcept;

extern template GroupScale group_scale_ref<Float32Format>(const std::uint32_t*, std::uint32_t,
                                                          std::uint64_t) noexcept;
extern template GroupScale group_scale_ref<Float64Format>(const std::uint64_t*, std::uint32_t,
                                                          std::uint64_t) noexcept;
extern template GroupScale group_scale_ref<Float16Format>(const std::uint16_t*, std::uint32_t,
                                                          std::uint64_t) noexcept;
extern template GroupScale group_scale_ref<BFloat16Format>(const std::uint16_t*, std::uint32_t,
                                                           std::uint64_t) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_GROUP_SCALE_REF_H_
