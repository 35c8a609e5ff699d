#include "quantize/group_scale_ref.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

// "Mean square of a group" of docs/format.md section 8, word by word; nothing if y = 0.
template <typename Format>
std::optional<std::int32_t> model_scale(const std::vector<typename Format::Bits>& values,
                                        double x) {
  std::uint64_t largest = 1;
  std::uint64_t finite = 0;
  const auto field_of = [](std::uint64_t bits) {
    return (bits >> Format::kMantissaBits) & ((std::uint64_t{1} << Format::kExponentBits) - 1);
  };
  const auto max_field = static_cast<std::uint64_t>(Format::kExponentMax);
  for (const auto bits : values) {
    if (field_of(bits) == max_field) continue;
    ++finite;
    largest = std::max(largest, field_of(bits));
  }
  if (finite == 0) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto bits : values) {
    const std::uint64_t field = field_of(bits);
    if (field == max_field) continue;
    std::uint64_t g = bits & ((std::uint64_t{1} << Format::kMantissaBits) - 1);
    if (field > 0) g += std::uint64_t{1} << Format::kMantissaBits;
    const std::uint64_t down = largest - std::max<std::uint64_t>(field, 1);
    std::uint64_t s = Format::kMantissaBits >= 10 ? g >> (Format::kMantissaBits - 10)
                                                  : g << (10 - Format::kMantissaBits);
    s = down > 63 ? 0 : s >> down;
    sum += s * s;
  }
  const auto factor = static_cast<std::uint64_t>(std::floor(x * x * std::pow(2.0, 28)));
  const std::uint64_t y = (sum << 8) / finite * factor;
  if (y == 0) return std::nullopt;
  const int log2_y = 63 - std::countl_zero(y);
  return static_cast<std::int32_t>(std::floor((log2_y - 36) / 2.0)) +
         static_cast<std::int32_t>(largest) - Format::kBias - 10;
}

template <typename Format>
class GroupScaleTest : public ::testing::Test {};
using Formats = ::testing::Types<Float32Format, Float64Format, Float16Format, BFloat16Format>;
TYPED_TEST_SUITE(GroupScaleTest, Formats);

constexpr double kSteps[] = {0x1p-8, 0.00575, 0.03, 1.0, 1.5, 8.0};

TYPED_TEST(GroupScaleTest, EqualsTheModelOnRandomPatterns) {
  using Bits = typename TypeParam::Bits;
  constexpr std::uint64_t kSeed = 81;
  SCOPED_TRACE("seed 81");
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 600);
    // Exponents from a window, so that groups of subnormals, of huge and of mixed values occur.
    const std::uint64_t base = random() % (1u << TypeParam::kExponentBits);
    const std::uint64_t window = 1 + random() % (1u << (1 + random() % TypeParam::kExponentBits));
    std::vector<Bits> values(count);
    for (Bits& value : values) {
      std::uint64_t field = base + random() % window;
      // Most groups are finite.
      const std::uint64_t limit =
          static_cast<std::uint64_t>(TypeParam::kExponentMax) + (round % 4 == 0 ? 1 : 0);
      field = std::min(field, limit - 1);
      value = static_cast<Bits>((random() & (TypeParam::kSign | TypeParam::kMantissaMask)) |
                                (field << TypeParam::kMantissaBits));
    }
    const double x = kSteps[round % 6];
    const GroupScale scale = group_scale_ref<TypeParam>(values.data(), count, scale_factor(x));
    const auto expected = model_scale<TypeParam>(values, x);
    ASSERT_EQ(scale.finite && !scale.vanishes, expected.has_value()) << "round " << round;
    if (expected.has_value()) {
      ASSERT_EQ(scale.exponent, *expected) << "round " << round;
    }
  }
}

TYPED_TEST(GroupScaleTest, TellsWhatAGroupHolds) {
  using Bits = typename TypeParam::Bits;
  const auto negative_zero = static_cast<Bits>(TypeParam::kSign);
  const auto infinity = static_cast<Bits>(TypeParam::kInfinity);
  const auto nan = static_cast<Bits>(TypeParam::kInfinity + 1);
  const auto look = [](std::vector<Bits> values) {
    return group_scale_ref<TypeParam>(values.data(), static_cast<std::uint32_t>(values.size()),
                                      scale_factor(1.0));
  };
  EXPECT_TRUE(look({0, 0}).zero);
  EXPECT_FALSE(look({0, 0}).negative_zero);
  EXPECT_TRUE(look({0, negative_zero}).zero);
  EXPECT_TRUE(look({0, negative_zero}).negative_zero);
  EXPECT_FALSE(look({nan, infinity}).finite);
  EXPECT_FALSE(look({nan, infinity}).zero);
  EXPECT_TRUE(look({nan, 0}).finite);
  EXPECT_TRUE(look({nan, 0}).vanishes);
  EXPECT_TRUE(look({1, 0}).finite);
}

TEST(GroupScale, IsTheRootMeanSquareRoundedDown) {
  // 1, 1, 1, 3: mean square 3, RMS 1.73.
  const std::vector<std::uint32_t> values = {0x3F800000u, 0xBF800000u, 0x3F800000u, 0x40400000u};
  EXPECT_EQ(group_scale_ref<Float32Format>(values.data(), 4, scale_factor(1.0)).exponent, 0);
  EXPECT_EQ(group_scale_ref<Float32Format>(values.data(), 4, scale_factor(2.0)).exponent, 1);
  EXPECT_EQ(group_scale_ref<Float32Format>(values.data(), 4, scale_factor(1.2)).exponent, 1);
  EXPECT_EQ(group_scale_ref<Float32Format>(values.data(), 4, scale_factor(0.5)).exponent, -1);
}

TEST(GroupScale, DoesNotDependOnTheOrder) {
  std::mt19937 random(5);
  SCOPED_TRACE("seed 5");
  std::normal_distribution<float> normal(0, 1e-3f);
  std::vector<std::uint32_t> values(4096);
  for (std::uint32_t& value : values) value = std::bit_cast<std::uint32_t>(normal(random));
  const auto of = [&] {
    return group_scale_ref<Float32Format>(values.data(), 4096, scale_factor(0.00575)).exponent;
  };
  const std::int32_t first = of();
  for (int i = 0; i < 50; ++i) {
    std::shuffle(values.begin(), values.end(), random);
    ASSERT_EQ(of(), first);
  }
}

TEST(GroupScale, LargestGroupOfLargestValuesDoesNotOverflow) {
  const std::vector<std::uint32_t> values(kMaxGroup, 0x7F7FFFFFu);
  // RMS just below 2^128, times 8.
  EXPECT_EQ(group_scale_ref<Float32Format>(values.data(), kMaxGroup, scale_factor(8.0)).exponent,
            130);
}

}  // namespace
}  // namespace gradwire::internal
