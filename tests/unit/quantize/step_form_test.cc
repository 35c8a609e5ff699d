#include "quantize/step_form_ref.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kCount = 333;

struct Quantized {
  std::vector<std::uint8_t> tokens;
  std::vector<std::uint16_t> lane_bits;
  std::uint32_t escapes = 0;
};

Quantized quantize(const std::vector<std::uint32_t>& values, std::int32_t k,
                   std::uint32_t q_max = 2047) {
  Quantized result;
  result.tokens.resize(values.size());
  result.lane_bits.resize(values.size());
  result.escapes = quantize_step_ref(values.data(), static_cast<std::uint32_t>(values.size()), k,
                                     q_max, result.tokens.data(), result.lane_bits.data());
  return result;
}

// q by the table of docs/format.md 3.1, the lane bits taken from the top of 16.
std::int32_t model_q(std::uint8_t token, std::uint16_t lane_bits) {
  if (token == 0) return 0;
  const bool negative = (lane_bits & 0x8000u) != 0;
  std::int32_t q = 1;
  if (token >= 4) {
    const int m = token / 2;
    const int rest = (lane_bits & 0x7FFF) >> (15 - (m - 2));
    q = (1 << (m - 1)) + (token % 2) * (1 << (m - 2)) + rest;
  }
  return negative ? -q : q;
}

double value_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Random patterns around 2^k, and any.
std::vector<std::uint32_t> patterns(std::mt19937_64* random, std::int32_t k) {
  std::vector<std::uint32_t> values(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    values[i] = static_cast<std::uint32_t>((*random)());
    if (i % 4 == 0) continue;
    const double q = static_cast<double>((*random)() % 5000) / 2 - 1250;
    values[i] = std::bit_cast<std::uint32_t>(static_cast<float>(std::ldexp(q, k)));
  }
  return values;
}

TEST(StepForm, RoundsToNearestEvenAndKeepsTheBound) {
  std::mt19937_64 random(17);
  SCOPED_TRACE("seed 17");
  for (std::int32_t k = Float32Format::kLeastExponent; k <= Float32Format::kBias; ++k) {
    const std::vector<std::uint32_t> values = patterns(&random, k);
    const Quantized coded = quantize(values, k);
    std::vector<std::uint32_t> back(kCount);
    ASSERT_TRUE(
        dequantize_step_ref(coded.tokens.data(), coded.lane_bits.data(), kCount, k, back.data()));
    std::uint32_t escapes = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const double x = value_of(values[i]);
      const double q = std::nearbyint(std::ldexp(x, -k));
      const bool escape = !std::isfinite(x) || std::abs(q) > 2047 ||
                          std::abs(std::ldexp(q, k)) >= std::ldexp(1.0, 128);
      ASSERT_EQ(coded.tokens[i] == kStepEscape, escape) << "k " << k << " x " << x;
      escapes += escape;
      if (escape) {
        ASSERT_EQ(coded.lane_bits[i], 0);
        continue;
      }
      ASSERT_TRUE(step_token_exists(coded.tokens[i]));
      ASSERT_EQ(model_q(coded.tokens[i], coded.lane_bits[i]), q) << "k " << k << " x " << x;
      // Nothing below the r(token) lane bits.
      ASSERT_EQ(coded.lane_bits[i] &
                    (0xFFFFu >> step_lane_bits(Float32Format::kMantissaBits)[coded.tokens[i]]),
                0u);
      ASSERT_EQ(value_of(back[i]), std::ldexp(q, k));
      ASSERT_LE(std::abs(value_of(back[i]) - x), std::ldexp(0.5, k)) << "k " << k << " x " << x;
      if (q == 0) {
        ASSERT_EQ(back[i], 0u) << "a lossy zero is +0";
      }
    }
    ASSERT_EQ(coded.escapes, escapes);
  }
}

// The same for float64, whose scales reach further than a float32 can scale by.
TEST(StepForm, RoundsFloat64ToNearestEvenAndKeepsTheBound) {
  std::mt19937_64 random(18);
  SCOPED_TRACE("seed 18");
  constexpr std::int32_t kLeast = Float64Format::kLeastExponent, kMost = Float64Format::kBias;
  for (std::int32_t k = kLeast; k <= kMost;
       k += k < kLeast + 70 || k >= kMost - 14 || std::abs(k) < 2 ? 1 : 7) {
    std::vector<double> values(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const std::uint64_t any = random();
      const double q = static_cast<double>(any % 5000) / 2 - 1250;
      const double near = q * (1 + std::ldexp(static_cast<double>(any % 3) - 1, -52));
      values[i] = i % 4 == 0 ? std::bit_cast<double>(any) : std::ldexp(i % 4 == 1 ? near : q, k);
    }
    std::vector<std::uint64_t> bits(kCount), back(kCount);
    std::memcpy(bits.data(), values.data(), kCount * sizeof(double));
    std::vector<std::uint8_t> tokens(kCount);
    std::vector<std::uint16_t> lane_bits(kCount);
    std::uint32_t escapes =
        quantize_step_ref(bits.data(), kCount, k, 2047, tokens.data(), lane_bits.data());
    ASSERT_TRUE(dequantize_step_ref(tokens.data(), lane_bits.data(), kCount, k, back.data()));
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const double q = std::nearbyint(std::ldexp(values[i], -k));
      const bool escape =
          !std::isfinite(values[i]) || std::abs(q) > 2047 || std::isinf(std::ldexp(q, k));
      ASSERT_EQ(tokens[i] == kStepEscape, escape) << "k " << k << " x " << values[i];
      escapes -= escape;
      if (escape) continue;
      ASSERT_EQ(model_q(tokens[i], lane_bits[i]), q) << "k " << k << " x " << values[i];
      const auto y = std::bit_cast<double>(back[i]);
      ASSERT_EQ(y, std::ldexp(q, k));
      ASSERT_FALSE(q == 0 && std::signbit(y));
      ASSERT_TRUE(std::abs(y - values[i]) <= std::ldexp(0.5, k)) << "k " << k << " x " << values[i];
    }
    ASSERT_EQ(escapes, 0u);
  }
}

TEST(StepForm, EveryQComesBackAtEveryScale) {
  for (const std::int32_t k : {-149, -148, -140, -126, -125, -124, -100, 0, 100, 112, 113, 116}) {
    std::vector<std::uint32_t> values;
    for (int q = -2047; q <= 2047; ++q) {
      const double x = std::ldexp(q, k);
      values.push_back(q == 0 ? 0 : std::bit_cast<std::uint32_t>(static_cast<float>(x)));
    }
    const Quantized coded = quantize(values, k);
    ASSERT_EQ(coded.escapes, 0u) << k;
    std::vector<std::uint32_t> back(values.size());
    ASSERT_TRUE(dequantize_step_ref(coded.tokens.data(), coded.lane_bits.data(),
                                    static_cast<std::uint32_t>(values.size()), k, back.data()));
    ASSERT_EQ(back, values) << k;
  }
}

TEST(StepForm, WorkedExample) {
  const Quantized coded = quantize({std::bit_cast<std::uint32_t>(-13.0f)}, 0);
  EXPECT_EQ(coded.tokens[0], 9);
  EXPECT_EQ(coded.lane_bits[0], 0b1010'0000'0000'0000);
  EXPECT_EQ(step_lane_bits(Float32Format::kMantissaBits)[9], 3);
}

TEST(StepForm, LimitEscapesExactlyWhatIsAboveIt) {
  for (std::uint32_t token = 0; token <= kStepTokenMax; ++token) {
    if (!step_token_exists(token)) continue;
    const std::uint32_t last = step_token_last(token);
    for (const std::int32_t k : {0, -149, 113}) {
      for (std::uint32_t q = last; q <= last + 1; ++q) {
        const float x = std::ldexp(static_cast<float>(q), k);
        const Quantized coded = quantize({std::bit_cast<std::uint32_t>(x)}, k, last);
        ASSERT_EQ(coded.escapes, q > last ? 1u : 0u) << "token " << token << " k " << k;
        if (q <= last) {
          ASSERT_EQ(coded.tokens[0], token);
        }
      }
    }
    // A tie between the last |q| and the next goes to the even one of them.
    const float tie = static_cast<float>(last) + 0.5f;
    const Quantized coded = quantize({std::bit_cast<std::uint32_t>(tie)}, 0, last);
    ASSERT_EQ(coded.escapes, last % 2) << "token " << token;
  }
}

TEST(StepForm, TokensPartitionTheMagnitudes) {
  std::uint32_t next = 0;
  for (std::uint32_t token = 0; token <= kStepTokenMax; ++token) {
    if (!step_token_exists(token)) continue;
    const std::uint32_t last = step_token_last(token);
    ASSERT_GE(last, next);
    const std::uint32_t magnitudes = last + 1 - next;
    // Sign and the number of the magnitude: 2^r values.
    if (token > 0) {
      ASSERT_EQ(2 * magnitudes, 1u << step_lane_bits(Float32Format::kMantissaBits)[token]);
    }
    next = last + 1;
  }
  EXPECT_EQ(next, 2048u);
}

TEST(StepForm, ResultBeyondFloat64IsRefused) {
  std::uint64_t value = 0;
  const std::uint8_t token = 4;  // |q| = 2
  const std::uint16_t lane_bits = 0x8000u;
  EXPECT_FALSE(dequantize_step_ref(&token, &lane_bits, 1, 1023, &value));
  EXPECT_TRUE(dequantize_step_ref(&token, &lane_bits, 1, 1022, &value));
  EXPECT_EQ(std::bit_cast<double>(value), -0x1p1023);
}

// Worked example of docs/format.md 3.1.
TEST(StepForm, BFloat16HasFewerLaneBits) {
  const Quantized coded = quantize({std::bit_cast<std::uint32_t>(1448.0f)}, 0);
  EXPECT_EQ(coded.tokens[0], 22);
  EXPECT_EQ(coded.lane_bits[0], 0b0110'1010'0000'0000);
  EXPECT_EQ(step_lane_bits(BFloat16Format::kMantissaBits)[22], 7);
  EXPECT_EQ(step_lane_bits(Float16Format::kMantissaBits),
            step_lane_bits(Float64Format::kMantissaBits));
}

TEST(StepForm, ResultBeyondFloat32IsRefused) {
  std::uint32_t value = 0;
  const std::uint8_t token = 4;  // |q| = 2
  const std::uint16_t lane_bits = 0;
  EXPECT_FALSE(dequantize_step_ref(&token, &lane_bits, 1, 127, &value));
  EXPECT_TRUE(dequantize_step_ref(&token, &lane_bits, 1, 126, &value));
  EXPECT_EQ(value_of(value), std::ldexp(1.0, 127));
}

}  // namespace
}  // namespace gradwire::internal
