#include "collective/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/float_model.h"

namespace gradwire::internal {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename Sum>
std::vector<std::byte> bytes_of(const std::vector<Sum>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Sum));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(ClearAccumulators, MinusZeroIsNeutral) {
  std::vector<std::byte> accumulators(2 * sizeof(double));
  clear_accumulators(DType::kFloat64, accumulators.data(), 2);
  EXPECT_TRUE(std::signbit(testing::read_value(DType::kFloat64, accumulators.data(), 1)));
  clear_accumulators(DType::kBFloat16, accumulators.data(), 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const double value = testing::read_value(DType::kFloat32, accumulators.data(), i);
    EXPECT_EQ(value, 0.0);
    EXPECT_TRUE(std::signbit(value));
  }
}

TEST(FinishReduction, ScalesInTheAccumulatorAndRoundsOnce) {
  const std::vector<float> sums = {3.0f,     -0.0f, 1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 0x1p-140f,
                                   65520.0f, 1e-7f, -1e30f,         0x1.fffffep127f};
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool average : {false, true}) {
      const std::vector<std::byte> accumulators = bytes_of(sums);
      const std::size_t size = dtype_size(dtype);
      std::vector<std::byte> results(sums.size() * size);
      std::vector<std::byte> expected(sums.size() * size);
      std::uint64_t nonfinite = 0;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const float scaled = average ? sums[i] * (1.0f / 3.0f) : sums[i];
        testing::write_value(dtype, expected.data(), i, scaled);
        nonfinite += !std::isfinite(testing::read_value(dtype, expected.data(), i));
      }
      EXPECT_EQ(
          finish_reduction(dtype, average, 3, accumulators.data(), results.data(), sums.size()),
          nonfinite);
      EXPECT_EQ(results, expected) << dtype_name(dtype);
    }
  }
}

TEST(FinishReduction, NanIsCanonicalAndCounted) {
  std::vector<float> sums = {1.0f, kNan, kInf, -kInf, -kNan};
  std::uint32_t payload = 0xFFA12345u;  // negative, signalling
  std::memcpy(&sums[4], &payload, 4);
  const std::vector<std::byte> accumulators = bytes_of(sums);
  std::vector<std::byte> results(sums.size() * 4);
  EXPECT_EQ(finish_reduction(DType::kFloat32, false, 2, accumulators.data(), results.data(), 5),
            4u);
  std::uint32_t bits[5];
  std::memcpy(bits, results.data(), sizeof(bits));
  EXPECT_EQ(bits[1], 0x7FC00000u);
  EXPECT_EQ(bits[2], 0x7F800000u);
  EXPECT_EQ(bits[3], 0xFF800000u);
  EXPECT_EQ(bits[4], 0x7FC00000u);
}

TEST(FinishReduction, Float64KeepsItsPrecision) {
  const std::vector<std::byte> accumulators = bytes_of<double>({1.0 + 0x1p-52, 1e300});
  std::vector<std::byte> results(16);
  EXPECT_EQ(finish_reduction(DType::kFloat64, true, 4, accumulators.data(), results.data(), 2), 0u);
  EXPECT_EQ(testing::read_value(DType::kFloat64, results.data(), 0), (1.0 + 0x1p-52) / 4);
  EXPECT_EQ(testing::read_value(DType::kFloat64, results.data(), 1), 1e300 / 4);
}

TEST(AddError, SkipsWhatIsNotFinite) {
  const std::vector<std::byte> values = bytes_of<float>({3.0f, kNan, 2.0f, kInf, -4.0f});
  const std::vector<std::byte> decoded = bytes_of<float>({2.0f, kNan, kInf, kInf, -4.0f});
  ErrorSums sums;
  add_error(DType::kFloat32, values.data(), decoded.data(), 5, &sums);
  EXPECT_EQ(sums.error_squares, 1.0);
  EXPECT_EQ(sums.value_squares, 25.0);
}

}  // namespace
}  // namespace gradwire::internal
