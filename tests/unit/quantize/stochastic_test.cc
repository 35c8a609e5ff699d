// Stochastic rounding to steps and mantissas: grid, bound, filter, bias; the vector kernels against
// the plain ones, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/counter_rng.h"
#include "core/fp_environment.h"
#include "core/simd_target.h"
#include "quantize/stochastic_simd.h"

namespace gradwire::internal {
namespace {

double value_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Any patterns, and values around 2^k.
std::vector<std::uint32_t> make_values(std::uint32_t count, std::int32_t k, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::uint32_t>(random());
    if (i % 4 == 0) continue;
    const double q = static_cast<double>(random() % 500000) / 100 - 2500;
    values[i] = std::bit_cast<std::uint32_t>(static_cast<float>(std::ldexp(q, k)));
  }
  return values;
}

std::vector<std::uint32_t> round_to_step(const std::vector<std::uint32_t>& values, StepGrid grid,
                                         NoisePlace place) {
  std::vector<std::uint32_t> rounded(values.size());
  round_to_step_ref<Float32Format>(values.data(), static_cast<std::uint32_t>(values.size()), grid,
                                   place, rounded.data());
  return rounded;
}

// On the grid, less than a step away, the side given by the noise; what cannot be rounded stays.
TEST(RoundToStep, IsTheRuleOfTheDocument) {
  constexpr NoisePlace kPlace{0x123456789ABCDEFu, 77};
  for (std::int32_t k = -149; k <= 127; ++k) {
    for (const bool filter : {false, true}) {
      SCOPED_TRACE(testing::Message() << "k " << k << " seed " << k + 200);
      const auto values = make_values(333, k, static_cast<std::uint64_t>(k + 200));
      const auto rounded = round_to_step(values, {k, filter}, kPlace);
      for (std::uint32_t i = 0; i < values.size(); ++i) {
        const double x = value_of(values[i]);
        const double y = value_of(rounded[i]);
        if (!(std::abs(x) < std::ldexp(1, k + 11))) {
          ASSERT_EQ(rounded[i], values[i]);
          continue;
        }
        // Exact in binary64: t has 28 bits, x 2^(16 - k) the 24 of x.
        const double t = std::nearbyint(std::ldexp(x, 16 - k));
        double q = std::floor((t + noise16(kPlace.key, kPlace.index + i)) / 65536);
        if (filter && std::abs(x) < std::ldexp(1, k)) q = 0;
        if (std::abs(std::ldexp(q, k)) >= std::ldexp(1, 128)) {
          ASSERT_EQ(rounded[i], values[i]);
          continue;
        }
        ASSERT_EQ(y, std::ldexp(q, k)) << x;
        ASSERT_TRUE(std::abs(x - y) < std::ldexp(1, k)) << x << " " << y;
        if (q == 0) {
          ASSERT_EQ(rounded[i], 0u);
        }
      }
    }
  }
}

TEST(RoundToStep, TellsWhetherAnythingIsLeft) {
  std::vector<std::uint32_t> values = {0, 0x80000000u, 1, std::bit_cast<std::uint32_t>(0.9999f)};
  std::vector<std::uint32_t> rounded(values.size());
  const NoisePlace place{noise_key(1, 0, 0, 0, 0), 0};
  const auto round = [&](bool filter) {
    return round_to_step_ref<Float32Format>(values.data(), 4, {0, filter}, place, rounded.data());
  };
  EXPECT_FALSE(round(true));
  EXPECT_EQ(rounded, std::vector<std::uint32_t>(4, 0));
  EXPECT_TRUE(round(false));
  values[3] = 0x7FC00000u;
  EXPECT_TRUE(round(true));
  EXPECT_EQ(rounded[3], 0x7FC00000u);
}

// Values of the narrow types stay values of the type: the results are those of float32.
template <typename Format>
void expect_like_float32(std::int32_t least, std::int32_t most, auto widen) {
  std::mt19937_64 random(5);
  SCOPED_TRACE("seed 5");
  for (std::int32_t k = least; k <= most; ++k) {
    std::vector<std::uint16_t> values(500);
    std::vector<std::uint32_t> wide(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint16_t>(random());
      wide[i] = widen(values[i]);
    }
    std::vector<std::uint16_t> rounded(values.size());
    const NoisePlace place{9, 1u << 20};
    round_to_step_ref<Format>(values.data(), 500, {k, false}, place, rounded.data());
    const auto expected = round_to_step(wide, {k, false}, place);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(widen(rounded[i]), expected[i]) << "k " << k << " pattern " << values[i];
    }
  }
}
TEST(RoundToStep, BFloat16IsTheUpperHalfOfFloat32) {
  expect_like_float32<BFloat16Format>(-133, 127,
                                      [](std::uint16_t x) { return std::uint32_t{x} << 16; });
}

TEST(RoundToStep, Float64) {
  const FpEnvironment environment;
  std::mt19937_64 random(6);
  SCOPED_TRACE("seed 6");
  for (const std::int32_t k : {-1074, -1060, -1022, -300, 0, 512, 1010, 1023}) {
    std::vector<std::uint64_t> values(500);
    for (auto& value : values) {
      const double q = static_cast<double>(random() % (1u << 30)) / 250000 - 2100;
      value = std::bit_cast<std::uint64_t>(std::ldexp(q, k));
    }
    std::vector<std::uint64_t> rounded(values.size());
    round_to_step_ref<Float64Format>(values.data(), 500, {k, false}, {3, 0}, rounded.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = std::bit_cast<double>(values[i]);
      const double y = std::bit_cast<double>(rounded[i]);
      if (rounded[i] == values[i]) continue;
      // Units of the step: exact for both.
      const double a = std::ldexp(x, -k);
      const double b = std::ldexp(y, -k);
      ASSERT_EQ(b, std::trunc(b)) << k;
      ASSERT_TRUE(std::abs(a - b) < 1) << k << " " << a << " " << b;
    }
  }
}

TEST(RoundToMantissa, IsTheRuleOfTheDocument) {
  constexpr NoisePlace kPlace{0xFEDCBA987654321u, 1001};
  for (std::uint32_t mantissa = 1; mantissa <= 23; ++mantissa) {
    SCOPED_TRACE(testing::Message() << "mantissa " << mantissa << ", as the seed");
    const auto values = make_values(1000, -3, mantissa);
    std::vector<std::uint32_t> rounded(values.size());
    round_to_mantissa_ref<Float32Format>(values.data(), 1000, mantissa, kPlace, rounded.data());
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      const double x = value_of(values[i]);
      const double y = value_of(rounded[i]);
      if (!std::isnormal(static_cast<float>(x)) || mantissa == 23) {
        ASSERT_EQ(rounded[i], values[i]);
        continue;
      }
      const double unit = std::ldexp(1, std::ilogb(x) - static_cast<int>(mantissa));
      const double t = std::nearbyint(std::abs(x) / unit * 65536);
      const double q = std::floor((t + noise16(kPlace.key, kPlace.index + i)) / 65536);
      if (q * unit >= 0x1p128) {
        ASSERT_EQ(rounded[i], values[i]);
        continue;
      }
      ASSERT_EQ(y, std::copysign(q * unit, x)) << x;
      ASSERT_TRUE(std::abs(x - y) < unit);
    }
  }
}

// Each of 64 places in a step, from both sides of zero: the mean of the results is the value.
TEST(RoundToStep, IsUnbiased) {
  constexpr std::uint32_t kDraws = 1u << 16;
  std::vector<std::uint32_t> rounded(kDraws);
  for (std::uint32_t place = 0; place < 64; ++place) {
    for (const float sign : {-1.0f, 1.0f}) {
      const float x = sign * (3 + (static_cast<float>(place) + 0.37f) / 64);
      const std::vector<std::uint32_t> values(kDraws, std::bit_cast<std::uint32_t>(x));
      round_to_step_float32(values.data(), kDraws, {0, false}, {noise_key(17, place, 0, 0, 0), 0},
                            rounded.data());
      double total = 0;
      for (const std::uint32_t pattern : rounded) total += value_of(pattern) - x;
      const double up = std::abs(x) - 3;
      EXPECT_LT(std::abs(total), 4 * std::sqrt(kDraws * up * (1 - up))) << x;
    }
  }
}

TEST(StochasticSimd, EqualsThePlainKernels) {
  const FpEnvironment environment;
  const auto targets = simd_targets();
  for (const std::string_view target : targets) {
    use_simd_target(target);
    SCOPED_TRACE(std::string(target));
    for (const std::uint32_t count : {0u, 1u, 2u, 31u, 64u, 256u, 257u, 4096u}) {
      for (const std::uint64_t index :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{640}, (std::uint64_t{1} << 33) - 100,
            (std::uint64_t{1} << 33) + 6}) {
        const NoisePlace place{mix64(count), index};
        for (const std::int32_t k : {-149, -109, -108, -20, 0, 5, 112, 113, 127}) {
          const auto values = make_values(count, k, index + count);
          std::vector<std::uint32_t> plain(count), vector(count);
          for (const bool filter : {false, true}) {
            const StepGrid grid{k, filter};
            EXPECT_EQ(
                round_to_step_ref<Float32Format>(values.data(), count, grid, place, plain.data()),
                round_to_step_float32(values.data(), count, grid, place, vector.data()));
            ASSERT_EQ(plain, vector) << "k " << k << " count " << count << " index " << index;
          }
        }
        for (const std::uint32_t mantissa : {1u, 6u, 7u, 8u, 16u}) {
          const auto values = make_values(count, 0, index + mantissa);
          std::vector<std::uint32_t> plain(count), vector(count);
          round_to_mantissa_ref<Float32Format>(values.data(), count, mantissa, place, plain.data());
          round_to_mantissa_float32(values.data(), count, mantissa, place, vector.data());
          ASSERT_EQ(plain, vector) << "mantissa " << mantissa << " count " << count;
        }
      }
    }
  }
  use_simd_target(targets.front());
}

}  // namespace
}  // namespace gradwire::internal
