// The vector kernels of `block` against the plain ones, bit for bit, on every kind of pattern.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/fp_environment.h"
#include "quantize/block_int.h"

namespace gradwire::internal {
namespace {

constexpr std::size_t kCounts[] = {1, 8, 31, 32, 64, 65, 200, 4096};

// Kinds 0 to 4: neighbours of one size, special values in some; 5: any bits; 6: zeros.
std::vector<std::uint32_t> make_values(std::size_t count, int kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  constexpr std::uint32_t kSpecial[] = {0,           0x80000000u, 0x7F800000u, 0xFF800000u,
                                        0x7FC00001u, 1,           0x807FFFFFu, 0x7F7FFFFFu};
  constexpr int kExponents[] = {0, -140, -109, 100, 126};
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) {
    if (kind == 6) continue;
    const double x =
        normal(random) * std::bit_cast<double>(std::uint64_t(1023 + kExponents[kind % 5]) << 52);
    value = kind == 5 ? static_cast<std::uint32_t>(random())
                      : std::bit_cast<std::uint32_t>(static_cast<float>(x));
    if (random() % 500 == 0) value = kSpecial[random() % 8];
  }
  return values;
}

TEST(BlockIntSimd, Encode) {
  const FpEnvironment environment;
  for (const std::size_t count : kCounts) {
    for (int kind = 0; kind <= 6; ++kind) {
      for (const std::uint32_t group : {8u, 40u, 64u, 128u, 4096u}) {
        for (const unsigned bits : {4u, 6u, 8u}) {
          for (const std::uint64_t index :
               {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{123456},
                (std::uint64_t{1} << 33) - 64, (std::uint64_t{5} << 33) + 64}) {
            const std::uint64_t seed = count * 1000 + group + static_cast<std::uint64_t>(kind);
            SCOPED_TRACE("count " + std::to_string(count) + " kind " + std::to_string(kind) +
                         " group " + std::to_string(group) + " bits " + std::to_string(bits) +
                         " index " + std::to_string(index) + " seed " + std::to_string(seed));
            const std::vector<std::uint32_t> values = make_values(count, kind, seed);
            const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
            for (const bool stochastic : {false, true}) {
              const BlockRounding rounding{stochastic, 0x123456789ABCDEFu * seed, index};
              std::vector<std::uint16_t> scales(count / group + 1), scales_simd(scales);
              std::vector<std::int8_t> integers(count), integers_simd(count);
              block_int_encode_ref(bytes, count, group, bits, rounding, scales.data(),
                                   integers.data());
              block_int_encode_simd(bytes, count, group, bits, rounding, scales_simd.data(),
                                    integers_simd.data());
              ASSERT_EQ(scales, scales_simd);
              ASSERT_EQ(integers, integers_simd);
            }
          }
        }
      }
    }
  }
}

TEST(BlockIntSimd, Dequantize) {
  const FpEnvironment environment;
  std::mt19937_64 random(7);
  for (const unsigned bits : {4u, 6u, 8u}) {
    const std::uint32_t sign = 1u << (bits - 1);
    for (const std::size_t count : kCounts) {
      for (const std::uint16_t scale : {kLeastBlockScale, std::uint16_t{0x3F80},
                                        std::uint16_t{0x3E91}, std::uint16_t{0x7F7F}}) {
        std::vector<std::uint8_t> patterns(count);
        for (std::uint8_t& pattern : patterns) {
          do {
            pattern = static_cast<std::uint8_t>(random() % (2 * sign));
          } while (pattern == sign);
        }
        std::vector<std::uint32_t> values(count), values_simd(count);
        const auto decode = [&](auto kernel, std::vector<std::uint32_t>& to) {
          return kernel(patterns.data(), count, scale, bits,
                        reinterpret_cast<std::byte*>(to.data()));
        };
        EXPECT_TRUE(decode(block_int_dequantize, values));
        EXPECT_TRUE(decode(block_int_dequantize_simd, values_simd));
        ASSERT_EQ(values, values_simd) << bits << " " << count << " " << scale;
        patterns[random() % count] = static_cast<std::uint8_t>(sign);
        EXPECT_FALSE(decode(block_int_dequantize_simd, values_simd));
      }
    }
  }
}

}  // namespace
}  // namespace gradwire::internal
