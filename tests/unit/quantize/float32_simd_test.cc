// The vector kernels of float32 against the plain ones, bit for bit, on every kind of pattern.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "core/fp_environment.h"
#include "quantize/float32_simd.h"

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kCounts[] = {1, 5, 16, 64, 100, 256, 320, 4096};

// Neighbours of one size, with special values among them; kind 5 is any bits.
std::vector<std::uint32_t> make_values(std::uint32_t count, int kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  constexpr std::uint32_t kSpecial[] = {0,           0x80000000u, 0x7F800000u, 0xFF800000u,
                                        0x7FC00001u, 1,           0x807FFFFFu, 0x7F7FFFFFu};
  constexpr int kExponents[] = {0, -140, -120, 100, 126};
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) {
    if (kind == 5) {
      value = static_cast<std::uint32_t>(random());
    } else {
      const double x = static_cast<double>(normal(random)) *
                       std::bit_cast<double>(std::uint64_t(1023 + kExponents[kind]) << 52);
      value = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      if (random() % 50 == 0) value = kSpecial[random() % 8];
    }
  }
  if (seed % 7 == 0) values.assign(count, seed % 2 == 0 ? 0u : 0x80000000u);
  return values;
}

template <typename Check>
void for_all_values(Check check) {
  const FpEnvironment environment;
  for (const std::uint32_t count : kCounts) {
    for (int kind = 0; kind <= 5; ++kind) {
      for (std::uint64_t seed = 1; seed <= 14; ++seed) {
        check(make_values(count, kind, seed * 1000 + count));
      }
    }
  }
}

TEST(Float32Simd, GroupScale) {
  for_all_values([](const std::vector<std::uint32_t>& values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    for (const double x : {1.0, 0.00575, 8.0}) {
      const std::uint64_t factor = scale_factor(x);
      const GroupScale plain = group_scale_ref<Float32Format>(values.data(), count, factor);
      const GroupScale vector = group_scale_simd(values.data(), count, factor);
      EXPECT_EQ(plain.zero, vector.zero);
      EXPECT_EQ(plain.negative_zero, vector.negative_zero);
      EXPECT_EQ(plain.finite, vector.finite);
      EXPECT_EQ(plain.vanishes, vector.vanishes);
      EXPECT_EQ(plain.exponent, vector.exponent);
    }
  });
}

TEST(Float32Simd, StepForm) {
  for_all_values([](const std::vector<std::uint32_t>& values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    for (const std::int32_t k : {-149, -125, -124, -20, 0, 100, 112, 113, 120, 127}) {
      for (const std::uint32_t q_max : {1u, 95u, 2047u}) {
        std::vector<std::uint8_t> tokens(count), tokens_simd(count);
        std::vector<std::uint16_t> bits(count), bits_simd(count);
        EXPECT_EQ(quantize_step_ref(values.data(), count, k, q_max, tokens.data(), bits.data()),
                  quantize_step_simd(values.data(), count, k, q_max, tokens_simd.data(),
                                     bits_simd.data()));
        ASSERT_EQ(tokens, tokens_simd) << k;
        ASSERT_EQ(bits, bits_simd) << k;
        std::vector<std::uint32_t> back(count), back_simd(count);
        EXPECT_EQ(dequantize_step_ref(tokens.data(), bits.data(), count, k, back.data()),
                  dequantize_step_simd(tokens.data(), bits.data(), count, k, back_simd.data()));
        bool escape = false;
        for (std::uint32_t i = 0; i < count; ++i) {
          if (tokens[i] == kStepEscape) {
            escape = true;  // what is written for escapes is undefined
          } else {
            ASSERT_EQ(back[i], back_simd[i]) << k;
          }
        }
        EXPECT_EQ(any_escape_simd(tokens.data(), count), escape);
      }
    }
  });
}

TEST(Float32Simd, ExponentForm) {
  for_all_values([](const std::vector<std::uint32_t>& values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    for (const std::uint32_t mantissa : {0u, 2u, 6u, 8u, 9u, 16u, 23u}) {
      const MantissaSplit split = split_mantissa(mantissa);
      std::vector<std::uint32_t> source = values;
      const std::uint32_t keep = ~((1u << (23 - mantissa)) - 1);
      for (std::uint32_t& value : source) value &= keep;
      for (const std::int32_t top : {0, 10, 29, 127, 131, 254, 255}) {
        std::vector<std::uint8_t> tokens(count), tokens_simd(count);
        std::vector<std::uint16_t> bits(count), bits_simd(count);
        std::vector<std::byte> plane(count * split.plane_bytes), plane_simd(plane.size());
        const TokenRange range{1, 18};
        EXPECT_EQ(quantize_exponent_ref<Float32Format>(source.data(), count, top, split, range,
                                                       tokens.data(), bits.data(), plane.data()),
                  quantize_exponent_simd(source.data(), count, top, split, range,
                                         tokens_simd.data(), bits_simd.data(), plane_simd.data()));
        ASSERT_EQ(tokens, tokens_simd) << mantissa << " " << top;
        ASSERT_EQ(bits, bits_simd) << mantissa << " " << top;
        ASSERT_EQ(plane, plane_simd) << mantissa << " " << top;
        std::vector<std::uint32_t> back(count), back_simd(count);
        EXPECT_EQ(dequantize_exponent_ref<Float32Format>(tokens.data(), bits.data(), plane.data(),
                                                         count, top, split, back.data()),
                  dequantize_exponent_simd(tokens.data(), bits.data(), plane.data(), count, top,
                                           split, back_simd.data()));
        for (std::uint32_t i = 0; i < count; ++i) {
          if (tokens[i] != kExponentEscape) {
            ASSERT_EQ(back[i], back_simd[i]) << mantissa << " " << top;
          }
        }
      }
    }
  });
}

TEST(Float32Simd, CollectMantissas) {
  for_all_values([](std::vector<std::uint32_t> values) {
    for (const std::uint32_t keep : {~0u, ~0u << 16, ~0u << 21}) {
      for (std::uint32_t& value : values) value &= keep;
      std::vector<std::byte> bytes(4 * values.size() + 1);  // askew
      std::memcpy(bytes.data() + 1, values.data(), 4 * values.size());
      ASSERT_EQ(collect_mantissas<Float32Format>(bytes.data() + 1, values.size()),
                collect_mantissas_simd(bytes.data() + 1, values.size()));
    }
  });
}

TEST(Float32Simd, GroupScales) {
  for_all_values([](const std::vector<std::uint32_t>& values) {
    if (values.size() % 64 != 0) return;
    const auto groups = static_cast<std::uint32_t>(values.size() / 64);
    std::vector<GroupScale> scales(groups);
    group_scales_simd(values.data(), 64, groups, scale_factor(1), scales.data());
    for (std::uint32_t g = 0; g < groups; ++g) {
      const GroupScale plain =
          group_scale_ref<Float32Format>(values.data() + 64 * g, 64, scale_factor(1));
      EXPECT_EQ(plain.zero, scales[g].zero);
      EXPECT_EQ(plain.finite, scales[g].finite);
      EXPECT_EQ(plain.exponent, scales[g].exponent);
    }
  });
}

TEST(Float32Simd, RoundMantissa) {
  for_all_values([](const std::vector<std::uint32_t>& values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    for (const std::uint32_t mantissa : {2u, 6u, 10u, 16u}) {
      std::vector<std::uint32_t> plain = values;
      std::vector<std::uint32_t> vector(count);
      round_mantissa_ref<Float32Format>(plain.data(), count, mantissa);
      round_mantissa_simd(values.data(), count, mantissa, vector.data());
      ASSERT_EQ(plain, vector) << mantissa;
    }
  });
}

}  // namespace
}  // namespace gradwire::internal
