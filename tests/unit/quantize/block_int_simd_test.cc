// The vector kernels of `block` against the plain ones, bit for bit, on every kind of pattern and
// every type; and what the plain ones make of values at the borders of the types.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/fp_environment.h"
#include "quantize/block_int.h"
#include "support/tensor.h"

namespace gradwire::internal {
namespace {

using test::Tensor;

constexpr std::size_t kCounts[] = {1, 8, 31, 32, 64, 65, 200, 4096};
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

// Kinds 0 to 4: neighbours of one size, special values in some; 5: any bits; 6: zeros; 7: a little
// more than numbers of bfloat16.
Tensor make_values(DType dtype, std::size_t count, int kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Tensor special = test::special_values(dtype);
  const bool half = dtype == DType::kFloat16;
  const int exponents[] = {0, half ? -22 : -140, half ? -14 : -109, half ? 13 : 100,
                           half ? 15 : 126};
  Tensor values = test::gradient_like(dtype, count, seed, std::ldexp(1.0, exponents[kind % 5]));
  const std::uint64_t below_bfloat16 = (std::uint64_t{1} << (dtype_size(dtype) == 8 ? 45 : 16)) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (kind == 5) values.set_bits(i, random());
    if (kind == 6) values.set_bits(i, 0);
    if (kind == 7) values.set_bits(i, (values.bits(i) & ~below_bfloat16) | 1);
    if (kind != 6 && random() % 500 == 0)
      values.set_bits(i, special.bits(random() % special.count));
  }
  return values;
}

void expect_same_encoding(const Tensor& values, std::uint32_t group, unsigned bits,
                          const BlockRounding& rounding) {
  std::vector<std::uint16_t> scales(values.count / group + 1), scales_simd(scales);
  std::vector<std::int8_t> integers(values.count), integers_simd(values.count);
  const std::byte* const bytes = values.bytes.data();
  block_int_encode_ref(values.dtype, bytes, values.count, group, bits, rounding, scales.data(),
                       integers.data());
  block_int_encode_simd(values.dtype, bytes, values.count, group, bits, rounding,
                        scales_simd.data(), integers_simd.data());
  ASSERT_EQ(scales, scales_simd);
  ASSERT_EQ(integers, integers_simd);
}

TEST(BlockIntSimd, Encode) {
  const FpEnvironment environment;
  constexpr std::uint64_t kIndices[] = {0, 7, 123456, (std::uint64_t{1} << 33) - 64,
                                        (std::uint64_t{5} << 33) + 64};
  for (const DType dtype : kTypes) {
    for (const std::size_t count : kCounts) {
      for (int kind = 0; kind <= 7; ++kind) {
        for (const std::uint32_t group : {8u, 40u, 64u, 128u, 4096u}) {
          const std::uint64_t seed = count * 1000 + group + static_cast<std::uint64_t>(kind);
          const Tensor values = make_values(dtype, count, kind, seed);
          for (const unsigned bits : {4u, 6u, 8u}) {
            for (const std::uint64_t index : kIndices) {
              SCOPED_TRACE(std::string(dtype_name(dtype)) + " count " + std::to_string(count) +
                           " kind " + std::to_string(kind) + " group " + std::to_string(group) +
                           " bits " + std::to_string(bits) + " index " + std::to_string(index) +
                           " seed " + std::to_string(seed));
              for (const bool stochastic : {false, true}) {
                expect_same_encoding(values, group, bits,
                                     {stochastic, 0x123456789ABCDEFu * seed, index});
              }
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
  for (const DType dtype : kTypes) {
    for (const unsigned bits : {4u, 6u, 8u}) {
      const std::uint32_t sign = 1u << (bits - 1);
      for (const std::size_t count : kCounts) {
        // The least and the largest; one; about the least and the largest numbers of float16.
        for (const int number :
             {+kLeastBlockScale, 0x7F7F, 0x3F80, 0x3E91, 0x3380, 0x3391, 0x3881, 0x477F, 0x4780}) {
          const auto scale = static_cast<std::uint16_t>(number);
          std::vector<std::uint8_t> patterns(count);
          for (std::uint8_t& pattern : patterns) {
            do {
              pattern = static_cast<std::uint8_t>(random() % (2 * sign));
            } while (pattern == sign);
          }
          Tensor values(dtype, count), values_simd(dtype, count);
          const auto decode = [&](auto kernel, Tensor& to) {
            return kernel(dtype, patterns.data(), count, scale, bits, to.bytes.data());
          };
          EXPECT_TRUE(decode(block_int_dequantize_ref, values));
          EXPECT_TRUE(decode(block_int_dequantize_simd, values_simd));
          ASSERT_EQ(values.bytes, values_simd.bytes) << bits << " " << count << " " << scale;
          for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(std::isfinite(values.value(i)));
          patterns[random() % count] = static_cast<std::uint8_t>(sign);
          EXPECT_FALSE(decode(block_int_dequantize_ref, values));
          EXPECT_FALSE(decode(block_int_dequantize_simd, values_simd));
        }
      }
    }
  }
}

// A group of that value and zeros.
std::uint16_t scale_of(DType dtype, std::uint64_t bits) {
  Tensor values(dtype, 8);
  values.set_bits(3, bits);
  std::uint16_t scale = 0;
  std::int8_t integers[8];
  block_int_encode_ref(dtype, values.bytes.data(), 8, 8, 8, {}, &scale, integers);
  return scale;
}

TEST(BlockIntScale, OfFloat64) {
  const auto of = [](double value) {
    return scale_of(DType::kFloat64, std::bit_cast<std::uint64_t>(value));
  };
  EXPECT_EQ(of(-0.0), kZeroGroupScale);
  EXPECT_EQ(of(1), 0x3F80);
  EXPECT_EQ(of(-1 - 0x1p-52), 0x3F81);  // 1 as float32
  EXPECT_EQ(of(1 + 0x1p-7), 0x3F81);
  EXPECT_EQ(of(2 - 0x1p-52), 0x4000);
  EXPECT_EQ(of(0x1p-110), kLeastBlockScale);
  EXPECT_EQ(of(0x1p-110 - 0x1p-162), kLeastBlockScale);  // rounded up to it
  EXPECT_EQ(of(0x1p-110 - 0x1p-119), kLeastBlockScale);
  EXPECT_EQ(of(0x1p-110 - 0x1p-118), kRawGroupScale);  // the bfloat16 below
  EXPECT_EQ(of(std::numeric_limits<double>::denorm_min()), kRawGroupScale);
  EXPECT_EQ(of(0x1.FEp127), 0x7F7F);
  EXPECT_EQ(of(0x1.FEp127 + 0x1p75), kRawGroupScale);  // in the range of float32, not of bfloat16
  EXPECT_EQ(of(0x1p128), kRawGroupScale);
  EXPECT_EQ(of(std::numeric_limits<double>::max()), kRawGroupScale);
  EXPECT_EQ(of(std::numeric_limits<double>::infinity()), kRawGroupScale);
  EXPECT_EQ(scale_of(DType::kFloat64, 0xFFFFFFFFFFFFFFFFu), kRawGroupScale);
}

TEST(BlockIntScale, OfHalves) {
  EXPECT_EQ(scale_of(DType::kFloat16, 0x8000), kZeroGroupScale);
  EXPECT_EQ(scale_of(DType::kFloat16, 1), 0x3380);       // 2^-24
  EXPECT_EQ(scale_of(DType::kFloat16, 0xFBFF), 0x4780);  // -65504: 65536
  EXPECT_EQ(scale_of(DType::kFloat16, 0x3C01), 0x3F81);
  EXPECT_EQ(scale_of(DType::kFloat16, 0x7C00), kRawGroupScale);
  EXPECT_EQ(scale_of(DType::kFloat16, 0x7C01), kRawGroupScale);
  EXPECT_EQ(scale_of(DType::kBFloat16, 0xBF81), 0x3F81);  // itself
  EXPECT_EQ(scale_of(DType::kBFloat16, 0x7F7F), 0x7F7F);
  EXPECT_EQ(scale_of(DType::kBFloat16, 0x0880), kLeastBlockScale);
  EXPECT_EQ(scale_of(DType::kBFloat16, 0x087F), kRawGroupScale);
  EXPECT_EQ(scale_of(DType::kBFloat16, 0xFF80), kRawGroupScale);
}

TEST(BlockIntDequantize, HalvesRoundToNearestEvenAndNeverToInf) {
  const auto value_of = [](DType dtype, std::int8_t q, std::uint16_t scale) {
    Tensor value(dtype, 1);
    const auto pattern = static_cast<std::uint8_t>(q);
    EXPECT_TRUE(block_int_dequantize_ref(dtype, &pattern, 1, scale, 8, value.bytes.data()));
    return value.bits(0);
  };
  EXPECT_EQ(value_of(DType::kFloat16, 127, 0x4780), 0x7BFFu);   // 65536: 65504
  EXPECT_EQ(value_of(DType::kFloat16, -127, 0x7F7F), 0xFBFFu);  // no encoder's
  EXPECT_EQ(value_of(DType::kFloat16, 126, 0x4780), 0x7BF0u);   // 65019.97: 65024
  EXPECT_EQ(value_of(DType::kFloat16, 0, 0x4780), 0u);
  EXPECT_EQ(value_of(DType::kFloat16, -1, 0x3380), 0x8000u);  // -2^-24 / 127: no encoder's
  EXPECT_EQ(value_of(DType::kFloat16, 64, 0x3380), 1u);       // 64 / 127 of the least
  EXPECT_EQ(value_of(DType::kBFloat16, 127, 0x7F7F), 0x7F7Fu);
  EXPECT_EQ(value_of(DType::kBFloat16, -127, 0x0880), 0x8880u);
  EXPECT_EQ(value_of(DType::kBFloat16, 1, 0x42FE), 0x3F80u);  // 127: steps of 1
}

}  // namespace
}  // namespace gradwire::internal
