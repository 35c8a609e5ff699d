#include "core/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gradwire::internal {
namespace {

// A 16-bit type as seen from float32.
struct Small {
  std::uint16_t (*narrow)(std::uint32_t);
  std::uint32_t (*widen)(std::uint16_t);
  std::uint16_t inf;
  std::uint16_t quiet;  // the bit that makes a NaN quiet
};
constexpr Small kTypes[] = {{bfloat16_from_float32_bits, float32_bits_from_bfloat16, 0x7F80, 0x40},
                            {float16_from_float32_bits, float32_bits_from_float16, 0x7C00, 0x200}};

double exact(const Small& type, std::uint16_t bits) { return float32_from_bits(type.widen(bits)); }

std::uint16_t narrow(const Small& type, float value) { return type.narrow(float32_bits(value)); }

std::uint16_t narrow(const Small& type, double value) {
  return type.narrow(float32_bits_from_float64_to_odd(std::bit_cast<std::uint64_t>(value)));
}

// The value of the pattern after the largest finite one, had the format one exponent more.
double beyond_largest(const Small& type) {
  const auto largest = static_cast<std::uint16_t>(type.inf - 1);
  return 2 * exact(type, largest) - exact(type, static_cast<std::uint16_t>(largest - 1));
}

// Every number between two neighbours goes to the nearer one, the middle to the even one: with
// the middle, and the numbers next to it, for all pairs of neighbours, that is the whole of
// round to nearest even.
template <typename Wide>
void check_all_boundaries(const Small& type) {
  for (std::uint32_t low = 0; low < type.inf; ++low) {
    const auto below = static_cast<std::uint16_t>(low);
    const auto above = static_cast<std::uint16_t>(low + 1);
    const double up = above == type.inf ? beyond_largest(type) : exact(type, above);
    const double middle = (exact(type, below) + up) / 2;
    const auto even = low % 2 == 0 ? below : above;
    const auto wide = static_cast<Wide>(middle);
    ASSERT_EQ(static_cast<double>(wide), middle) << low;
    for (const Wide sign : {Wide{1}, Wide{-1}}) {
      const std::uint16_t bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(narrow(type, sign * static_cast<Wide>(exact(type, below))), below | bit) << low;
      ASSERT_EQ(narrow(type, sign * wide), even | bit) << low;
      ASSERT_EQ(narrow(type, sign * std::nextafter(wide, Wide{0})), below | bit) << low;
      const Wide next = std::nextafter(wide, std::numeric_limits<Wide>::infinity());
      ASSERT_EQ(narrow(type, sign * next), above | bit) << low;
    }
  }
}

TEST(FloatBits, Float32RoundsToNearestEvenAtEveryBoundary) {
  for (const Small& type : kTypes) check_all_boundaries<float>(type);
}

TEST(FloatBits, Float64RoundsOnceAtEveryBoundary) {
  for (const Small& type : kTypes) check_all_boundaries<double>(type);
}

TEST(FloatBits, OverflowBecomesInfinity) {
  for (const Small& type : kTypes) {
    EXPECT_EQ(narrow(type, std::numeric_limits<float>::max()), type.inf);
    EXPECT_EQ(narrow(type, -std::numeric_limits<double>::max()), type.inf | 0x8000);
    EXPECT_EQ(narrow(type, std::numeric_limits<double>::infinity()), type.inf);
    EXPECT_EQ(narrow(type, -std::numeric_limits<float>::infinity()), type.inf | 0x8000);
  }
}

TEST(FloatBits, UnderflowKeepsTheSign) {
  for (const Small& type : kTypes) {
    EXPECT_EQ(narrow(type, -0.0f), 0x8000);
    EXPECT_EQ(narrow(type, -0.0), 0x8000);
    EXPECT_EQ(narrow(type, -std::numeric_limits<float>::denorm_min()), 0x8000);
    EXPECT_EQ(narrow(type, std::numeric_limits<double>::denorm_min()), 0);
  }
}

TEST(FloatBits, NanStaysNanQuietWithTheUpperPayload) {
  EXPECT_EQ(bfloat16_from_float32_bits(0x7F800001), 0x7FC0);
  EXPECT_EQ(bfloat16_from_float32_bits(0xFFABCDEF), 0xFFEB);
  EXPECT_EQ(float16_from_float32_bits(0x7F800001), 0x7E00);
  EXPECT_EQ(float16_from_float32_bits(0xFFFFFFFF), 0xFFFF);
  EXPECT_EQ(bfloat16_from_float32_bits(float32_bits_from_float64_to_odd(0x7FF0000000000001)),
            0x7FC0);
  EXPECT_EQ(bfloat16_from_float32_bits(float32_bits_from_float64_to_odd(0xFFFFE00000000000)),
            0xFFFF);
  EXPECT_EQ(float16_from_float32_bits(float32_bits_from_float64_to_odd(0x7FF8000000000000)),
            0x7E00);
}

TEST(FloatBits, WideningThenNarrowingIsTheIdentity) {
  for (const Small& type : kTypes) {
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const bool nan = (bits & 0x7FFF) > type.inf;
      const auto expected = static_cast<std::uint16_t>(nan ? bits | type.quiet : bits);
      const std::uint32_t single = type.widen(bits);
      ASSERT_EQ(type.narrow(single), expected) << pattern;
      ASSERT_EQ(std::isnan(float32_from_bits(single)), nan) << pattern;
      const std::uint64_t wide = float64_bits_from_float32_bits(single);
      ASSERT_EQ(type.narrow(float32_bits_from_float64_to_odd(wide)), expected) << pattern;
    }
  }
}

TEST(FloatBits, Float16KnownValues) {
  EXPECT_EQ(float32_from_bits(float32_bits_from_float16(0x3C00)), 1.0f);
  EXPECT_EQ(float32_from_bits(float32_bits_from_float16(0x0001)), 0x1p-24f);
  EXPECT_EQ(float32_from_bits(float32_bits_from_float16(0x03FF)), 1023 * 0x1p-24f);
  EXPECT_EQ(float32_from_bits(float32_bits_from_float16(0x0400)), 0x1p-14f);
  EXPECT_EQ(float32_from_bits(float32_bits_from_float16(0x7BFF)), 65504.0f);
  EXPECT_EQ(float32_bits_from_float16(0xFC00), 0xFF800000u);
  EXPECT_EQ(float32_bits_from_float16(0x7E01), 0x7FC02000u);
}

TEST(FloatBits, Float64HoldsEveryFloat32Exactly) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Every other pattern gets an exponent of 0, so that subnormals are not rare.
    const std::uint32_t bits =
        static_cast<std::uint32_t>(random()) & (i % 2 == 0 ? ~0u : 0x807FFFFFu);
    const auto wide = std::bit_cast<double>(float64_bits_from_float32_bits(bits));
    const float single = float32_from_bits(bits);
    if (std::isnan(single)) {
      ASSERT_EQ(float64_bits_from_float32_bits(bits) & 0xFFFFFFFFFFFFF,
                std::uint64_t{bits & 0x7FFFFF} << 29);
    }
    ASSERT_EQ(std::isnan(wide), std::isnan(single)) << bits;
    if (!std::isnan(single)) {
      ASSERT_EQ(wide, static_cast<double>(single)) << bits;
    }
    ASSERT_EQ(std::signbit(wide), std::signbit(single)) << bits;
  }
}

}  // namespace
}  // namespace gradwire::internal
