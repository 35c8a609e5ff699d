#include "quantize/exponent_form_ref.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kCount = 301;
constexpr TokenRange kAllTokens{0, kExponentTokenMax};

template <typename Format>
class ExponentFormTest : public ::testing::Test {};
using Formats = ::testing::Types<Float32Format, Float64Format, Float16Format, BFloat16Format>;
TYPED_TEST_SUITE(ExponentFormTest, Formats);

// Exponent field and mantissa by the table of docs/format.md 3.2 from token, lane bits and plane.
template <typename Format>
std::uint64_t model_value(std::uint8_t token, std::uint16_t lane_bits, std::uint64_t plane,
                          std::int32_t top, MantissaSplit split) {
  const std::uint64_t sign = lane_bits >> 15;
  const std::uint32_t all = Format::kExponentBits + Format::kMantissaBits;
  if (token == kExponentZero) return sign << all;
  const std::uint32_t high = split.lane_bits() - 1;
  std::uint64_t mantissa = (lane_bits & 0x7FFFu) >> (15 - high);
  mantissa = (mantissa << (8 * split.plane_bytes)) | plane;
  mantissa <<= Format::kMantissaBits - split.mantissa;
  return (sign << all) | (static_cast<std::uint64_t>(top - token) << Format::kMantissaBits) |
         mantissa;
}

TYPED_TEST(ExponentFormTest, KeepsEveryBitOfWhatHasAToken) {
  using Bits = typename TypeParam::Bits;
  std::mt19937_64 random(23);
  SCOPED_TRACE("seed 23");
  for (int round = 0; round < 800; ++round) {
    const std::uint32_t kept =
        static_cast<std::uint32_t>(random() % (TypeParam::kMantissaBits + 1));
    const MantissaSplit split = split_mantissa(kept);
    ASSERT_LE(split.lane_bits(), kMaxExponentLaneBits);
    ASSERT_LE(split.plane_bytes, kMaxPlaneBytes);
    const auto top = static_cast<std::int32_t>(random() % (TypeParam::kExponentMax + 1u));
    const TokenRange range = round % 2 == 0
                                 ? kAllTokens
                                 : TokenRange{static_cast<std::uint32_t>(random() % 3),
                                              static_cast<std::uint32_t>(10 + random() % 20)};
    const auto low = static_cast<typename TypeParam::Wide>(
        (typename TypeParam::Wide{1} << (TypeParam::kMantissaBits - kept)) - 1);
    std::vector<Bits> values(kCount);
    for (Bits& value : values) {
      value = static_cast<Bits>(random() & ~static_cast<std::uint64_t>(low));
      if (random() % 16 == 0) value &= static_cast<Bits>(TypeParam::kSign);
      if (random() % 16 == 0)
        value &= static_cast<Bits>(TypeParam::kSign | TypeParam::kMantissaMask);
    }
    std::vector<std::uint8_t> tokens(kCount);
    std::vector<std::uint16_t> lane_bits(kCount);
    std::vector<std::byte> plane(kCount * split.plane_bytes + 1, std::byte{0xAA});
    const std::uint32_t escapes = quantize_exponent_ref<TypeParam>(
        values.data(), kCount, top, split, range, tokens.data(), lane_bits.data(), plane.data());
    ASSERT_EQ(plane.back(), std::byte{0xAA}) << "wrote beyond the plane";
    std::vector<Bits> back(kCount);
    ASSERT_TRUE(dequantize_exponent_ref<TypeParam>(tokens.data(), lane_bits.data(), plane.data(),
                                                   kCount, top, split, back.data()));
    std::uint32_t expected_escapes = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      std::uint64_t low_bits = 0;
      std::memcpy(&low_bits, plane.data() + i * split.plane_bytes, split.plane_bytes);
      const auto magnitude = static_cast<std::uint64_t>(values[i] & TypeParam::kMagnitude);
      const auto field = static_cast<std::int32_t>(magnitude >> TypeParam::kMantissaBits);
      const std::int32_t token = top - field;
      const bool has_token = field < TypeParam::kExponentMax &&
                             token >= static_cast<std::int32_t>(range.first) &&
                             token <= static_cast<std::int32_t>(range.last);
      const int expected = magnitude == 0 ? kExponentZero : has_token ? token : kExponentEscape;
      ASSERT_EQ(tokens[i], expected) << "round " << round << " value " << i;
      if (expected == kExponentEscape) {
        ++expected_escapes;
        ASSERT_EQ(low_bits, 0u);
        ASSERT_EQ(lane_bits[i], 0u);
        continue;
      }
      ASSERT_EQ(lane_bits[i] & (0xFFFFu >> exponent_lane_bits(split)[tokens[i]]), 0u);
      ASSERT_EQ(back[i], values[i]) << "round " << round << " value " << i;
      ASSERT_EQ(model_value<TypeParam>(tokens[i], lane_bits[i], low_bits, top, split), values[i]);
    }
    ASSERT_EQ(escapes, expected_escapes);
  }
}

TYPED_TEST(ExponentFormTest, RefusesFieldsOutsideTheType) {
  using Bits = typename TypeParam::Bits;
  const MantissaSplit split = split_mantissa(4);
  const std::uint16_t lane_bits = 0;
  Bits value = 0;
  const auto decode = [&](std::uint8_t token, std::int32_t top) {
    return dequantize_exponent_ref<TypeParam>(&token, &lane_bits, nullptr, 1, top, split, &value);
  };
  EXPECT_TRUE(decode(5, 5));
  EXPECT_EQ(value, 0u);
  EXPECT_FALSE(decode(6, 5));
  EXPECT_FALSE(decode(0, TypeParam::kExponentMax));
  EXPECT_TRUE(decode(1, TypeParam::kExponentMax));
  EXPECT_TRUE(decode(kExponentZero, 0));
  EXPECT_TRUE(decode(kExponentEscape, 0));
}

TYPED_TEST(ExponentFormTest, CountsTheMantissaBitsInUse) {
  using Bits = typename TypeParam::Bits;
  constexpr std::uint32_t kAll = TypeParam::kMantissaBits;
  EXPECT_EQ(used_mantissa_bits<TypeParam>(0), 0u);
  EXPECT_EQ(used_mantissa_bits<TypeParam>(1), kAll);
  EXPECT_EQ(used_mantissa_bits<TypeParam>(TypeParam::kHidden >> 1), 1u);
  // The mantissas of NaN do not count; data needs no alignment.
  const Bits values[] = {static_cast<Bits>(TypeParam::kInfinity | 1),
                         static_cast<Bits>(TypeParam::kHidden >> 1),
                         static_cast<Bits>(TypeParam::kSign | (TypeParam::kHidden >> 2))};
  std::vector<std::byte> bytes(sizeof(values) + 1);
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  const auto all = collect_mantissas<TypeParam>(bytes.data() + 1, 3);
  EXPECT_EQ(used_mantissa_bits<TypeParam>(all), 2u);
}

TEST(RoundMantissa, KeepsTheBoundOnRandomPatterns) {
  std::mt19937_64 random(29);
  SCOPED_TRACE("seed 29");
  for (std::uint32_t mantissa = 2; mantissa <= 16; ++mantissa) {
    for (int i = 0; i < 200000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      std::uint32_t rounded = bits;
      round_mantissa_ref<Float32Format>(&rounded, 1, mantissa);
      const double x = std::bit_cast<float>(bits);
      const double y = std::bit_cast<float>(rounded);
      const double bound = std::ldexp(std::abs(x), -static_cast<int>(mantissa) - 1);
      if (x == 0) {
        ASSERT_EQ(rounded, 0u);
      } else if (!std::isfinite(x) || std::abs(x) < std::ldexp(1.0, -126)) {
        ASSERT_TRUE(std::isnan(y)) << x;
      } else if (std::isnan(y)) {
        // Refused: only where rounding would give Inf.
        ASSERT_GT(std::abs(x) + bound, 3.402823e38) << x;
      } else {
        ASSERT_LE(std::abs(y - x), bound) << x;
        ASSERT_EQ(rounded & ((1u << (23 - mantissa)) - 1), 0u);
      }
    }
  }
}

TEST(RoundMantissa, TiesGoToEvenAndCarryIntoTheExponent) {
  const auto round = [](float x, std::uint32_t mantissa) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    round_mantissa_ref<Float32Format>(&bits, 1, mantissa);
    return std::bit_cast<float>(bits);
  };
  EXPECT_EQ(round(1.125f, 2), 1.0f);
  EXPECT_EQ(round(1.375f, 2), 1.5f);
  EXPECT_EQ(round(-1.875f, 2), -2.0f);
  EXPECT_EQ(round(1.9375f, 2), 2.0f);
}

}  // namespace
}  // namespace gradwire::internal
