// Scales that are not the RMS, against exact arithmetic on integers of any size.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/simd_target.h"
#include "quantize/value_range_simd.h"

namespace gradwire::internal {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

ValueRange range_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> patterns;
  for (const float value : values) patterns.push_back(bits_of(value));
  return value_range_ref<Float32Format>(patterns.data(), patterns.size());
}

std::int32_t range_exponent(const std::vector<float>& values, double x) {
  const GroupScale scale = scale_of_range<Float32Format>(range_of(values), exact_factor(x));
  EXPECT_TRUE(scale.finite && !scale.vanishes && !scale.zero);
  return scale.exponent;
}

TEST(ValueRange, Cases) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = 0x1p-149f;
  EXPECT_EQ(range_exponent({-1, 3}, 1), 2);
  EXPECT_EQ(range_exponent({-1, 3}, 0.25), 0);
  EXPECT_EQ(range_exponent({-1, 3}, std::nextafter(0.25, 0.0)), -1);
  EXPECT_EQ(range_exponent({2, 3, kNan, -kInf}, 1), 0);
  EXPECT_EQ(range_exponent({-3, -2}, 1), 0);
  EXPECT_EQ(range_exponent({0, 5}, 1), 2);
  EXPECT_EQ(range_exponent({-0.0f, -5}, 1), 2);
  // max - min is beyond float32.
  EXPECT_EQ(range_exponent({-kMost, kMost}, 1), 128);
  EXPECT_EQ(range_exponent({-kMost, kMost}, 0.5), 127);
  // A little below a power of two by a small value, and by one that cannot be seen: cut downwards.
  EXPECT_EQ(range_exponent({0x1p-20f, 1}, 1), -1);
  EXPECT_EQ(range_exponent({kLeast, 1}, 1), -1);
  EXPECT_EQ(range_exponent({-kLeast, 1}, 1), 0);
  EXPECT_EQ(range_exponent({kLeast, kMost}, 1), 127);
  EXPECT_EQ(range_exponent({kLeast, 2 * kLeast}, 1), -149);
  EXPECT_EQ(range_exponent({1, std::nextafter(1.0f, 2.0f)}, 1), -23);

  const GroupScale constant = scale_of_range<Float32Format>(range_of({5, 5}), exact_factor(1));
  EXPECT_TRUE(constant.finite && constant.vanishes && !constant.zero);
  for (const std::vector<float>& values : {std::vector<float>{0, 0}, {0, -0.0f}}) {
    const ValueRange range = range_of(values);
    for (const GroupScale& scale : {scale_of_range<Float32Format>(range, exact_factor(1)),
                                    scale_of_largest<Float32Format>(range, exact_factor(1)),
                                    scale_of_factor(range, exact_factor(1))}) {
      EXPECT_TRUE(scale.zero && !scale.finite);
      EXPECT_EQ(scale.negative_zero, std::signbit(values[1]));
    }
  }
  for (const std::vector<float>& values : {std::vector<float>{kNan}, {kInf, -kInf}}) {
    const GroupScale scale = scale_of_range<Float32Format>(range_of(values), exact_factor(1));
    EXPECT_TRUE(!scale.zero && !scale.finite);
  }
  // Zeros among NaN are no zero group: s = 0.
  const GroupScale zeros = scale_of_largest<Float32Format>(range_of({0, kNan}), exact_factor(1));
  EXPECT_TRUE(!zeros.zero && zeros.finite && zeros.vanishes);
}

TEST(ValueRange, LargestAndAbsolute) {
  const ValueRange range = range_of({-3, 1, 0});
  EXPECT_EQ(scale_of_largest<Float32Format>(range, exact_factor(1)).exponent, 1);
  EXPECT_EQ(scale_of_largest<Float32Format>(range, exact_factor(1.0 / 3)).exponent, -1);
  EXPECT_EQ(
      scale_of_largest<Float32Format>(range, exact_factor(std::nextafter(1.0 / 3, 1.0))).exponent,
      0);
  for (const double x : {0x1p-126, 0.001, 0.75, 1.0, 3.5, 0x1.8p127}) {
    EXPECT_EQ(scale_of_factor(range, exact_factor(x)).exponent, std::ilogb(x)) << x;
  }
}

// 2^k <= X (max - min) < 2^(k + 1), by numbers that long double holds exactly.
TEST(ValueRange, IsExactForRandomValues) {
  std::mt19937_64 random(31);
  SCOPED_TRACE("seed 31");
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int round = 0; round < 100000; ++round) {
    const auto down = static_cast<int>(random() % 14);
    const float a = uniform(random);
    const float b = std::ldexp(uniform(random), -down);
    const float x = std::ldexp(1 + std::abs(uniform(random)), -static_cast<int>(random() % 10));
    if (a == b) continue;
    const long double scale =
        static_cast<long double>(std::max(a, b)) - static_cast<long double>(std::min(a, b));
    // 24 bits times at most 39.
    EXPECT_EQ(range_exponent({a, b}, x), std::ilogb(scale * x)) << a << " " << b << " " << x;
  }
}

TEST(ValueRange, VectorKernelEqualsThePlainOne) {
  std::mt19937_64 random(32);
  SCOPED_TRACE("seed 32");
  const auto targets = simd_targets();
  for (const std::string_view target : targets) {
    use_simd_target(target);
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::uint32_t> values(random() % 70);
      const auto mask = static_cast<std::uint32_t>(random() | random() | random());
      for (auto& value : values) value = static_cast<std::uint32_t>(random()) & mask;
      if (round % 3 == 0) values.assign(values.size(), 0x80000000u * (round % 2));
      if (round % 5 == 0) values.assign(values.size(), 0x7F800001u);
      const ValueRange plain = value_range_ref<Float32Format>(values.data(), values.size());
      const ValueRange vector = value_range_float32(values.data(), values.size());
      ASSERT_EQ(plain.lowest, vector.lowest) << target;
      ASSERT_EQ(plain.highest, vector.highest);
      ASSERT_EQ(plain.nonfinite, vector.nonfinite);
      ASSERT_EQ(plain.negative_zero, vector.negative_zero);
    }
  }
  use_simd_target(targets.front());
}

}  // namespace
}  // namespace gradwire::internal
