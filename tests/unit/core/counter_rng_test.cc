#include "core/counter_rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace gradwire::internal {
namespace {

TEST(CounterRng, MixersKnownValues) {
  // The first number of splitmix64 with seed 0.
  EXPECT_EQ(mix64(0x9E3779B97F4A7C15u), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(mix64(1), 0x5692161D100B05E5u);
  EXPECT_EQ(mix32(0, 0), 0u);
  EXPECT_EQ(mix32(1, 0), 0x42741D6u);
  EXPECT_EQ(mix32(0xDEADBEEFu, 0), 0x921725Eu);
  EXPECT_EQ(mix32(1, 0x12345678u), 0xD5B8342Au);
}

TEST(CounterRng, NoiseKnownValues) {
  // Computed from docs/format.md section 8 with big integers.
  const std::uint64_t key = noise_key(7, 100, 3, 2, 1);
  EXPECT_EQ(key, 0x991F2F46684DCDF3u);
  EXPECT_EQ(noise16(key, 0), 0x78DAu);
  EXPECT_EQ(noise16(key, 1), 0x1EB6u);
  EXPECT_EQ(noise16(key, 2), 0x347Cu);
  EXPECT_EQ(noise16(key, 3), 0xE62Cu);
  EXPECT_EQ(noise16(key, (std::uint64_t{1} << 33) - 1), 0x7F52u);
  EXPECT_EQ(noise16(key, std::uint64_t{1} << 33), 0x8612u);
  EXPECT_EQ(noise16(key, (std::uint64_t{1} << 33) + 1), 0x339u);
  EXPECT_EQ(noise16(key, (std::uint64_t{1} << 40) + 5), 0x7E97u);
}

TEST(CounterRng, EveryInputChangesTheKey) {
  const std::uint64_t key = noise_key(1, 2, 3, 4, 0);
  EXPECT_NE(noise_key(2, 2, 3, 4, 0), key);
  EXPECT_NE(noise_key(1, 3, 3, 4, 0), key);
  EXPECT_NE(noise_key(1, 2, 4, 4, 0), key);
  EXPECT_NE(noise_key(1, 2, 3, 5, 0), key);
  EXPECT_NE(noise_key(1, 2, 3, 4, 1), key);
}

TEST(CounterRng, FillIsTheSameAsOneByOneAlsoAcrossTheWrap) {
  const std::uint64_t key = noise_key(5, 6, 7, 8, 2);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{12345},
                                    (std::uint64_t{1} << 32) - 10, (std::uint64_t{7} << 32) - 1}) {
    std::vector<std::uint32_t> pairs(100);
    fill_noise(key, first, pairs.size(), pairs.data());
    std::vector<std::uint16_t> halves(200);
    std::memcpy(halves.data(), pairs.data(), 400);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(halves[i], noise16(key, 2 * first + i)) << first << " " << i;
    }
  }
}

TEST(CounterRng, NoiseIsUniformAndNeighboursAreIndependent) {
  // 2^20 values in 256 cells: chi-squared has 255 degrees of freedom, sigma sqrt(510) = 22.6.
  // Fixed seeds: the figures do not change from run to run.
  constexpr std::size_t kValues = 1 << 20;
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    const std::uint64_t key = noise_key(seed, 0, 0, 0, 0);
    std::vector<double> high(256), low(256), joint(256);
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < kValues; ++i) {
      const std::uint32_t noise = noise16(key, i);
      ++high[noise >> 8];
      ++low[noise & 0xFF];
      ++joint[(noise >> 12) | ((last >> 12) << 4)];
      last = noise;
    }
    for (const auto& cells : {high, low, joint}) {
      double chi = 0;
      for (const double cell : cells) chi += (cell - 4096) * (cell - 4096) / 4096;
      EXPECT_LT(std::abs(chi - 255), 5 * 22.6) << "seed " << seed;
    }
  }
}

TEST(CounterRng, StreamsAreIndependent) {
  // The same places in the streams of other senders, steps and phases, and one place further: means
  // of n products of centred uniform numbers have sigma 1 / (12 sqrt(n)).
  constexpr std::size_t kValues = 1 << 18;
  const auto centred = [](std::uint64_t key, std::size_t i) {
    return (noise16(key, i) + .5) / 65536 - .5;
  };
  for (const std::uint64_t step : {0u, 1u, 1000u}) {
    const std::uint64_t key = noise_key(1, step, 5, 0, 0);
    for (const std::uint64_t other : {noise_key(1, step, 5, 1, 0), noise_key(1, step + 1, 5, 0, 0),
                                      noise_key(1, step, 5, 0, 1), noise_key(1, step, 6, 0, 0)}) {
      double same = 0;
      double next = 0;
      for (std::size_t i = 0; i < kValues; ++i) {
        same += centred(key, i) * centred(other, i);
        next += centred(key, i) * centred(other, i + 1);
      }
      const double sigma = std::sqrt(static_cast<double>(kValues)) / 12;
      EXPECT_LT(std::abs(same), 4.5 * sigma) << "step " << step;
      EXPECT_LT(std::abs(next), 4.5 * sigma) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace gradwire::internal
