#include "quantize/group_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/float_bits.h"
#include "support/tensor.h"

namespace gradwire::internal {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(GroupSums, LargestMagnitude) {
  EXPECT_EQ(largest_magnitude_ref(bytes_of({0, -3, 2}).data(), 3), float32_bits(3.0f));
  EXPECT_EQ(largest_magnitude_ref(bytes_of({-0.0f}).data(), 1), 0u);
  EXPECT_EQ(largest_magnitude_ref(bytes_of({1, -INFINITY}).data(), 2), kFloat32Inf);
  EXPECT_GT(largest_magnitude_ref(bytes_of({NAN, INFINITY}).data(), 2), kFloat32Inf);
}

TEST(GroupSums, NormIsUpAndNearTheNorm) {
  for (const double size : {1e-44, 1e-38, 1.0, 3e36}) {
    for (const std::size_t count : {1, 2, 512, 4096}) {
      const test::Tensor given = test::gradient_like(DType::kFloat32, count, count, size);
      const std::uint32_t largest = largest_magnitude_ref(given.bytes.data(), count);
      if (largest == 0) continue;
      double squares = 0;
      for (std::size_t i = 0; i < count; ++i) squares += given.value(i) * given.value(i);
      const double norm = std::sqrt(squares);
      const double most = float32_from_bits(largest);
      const double unit = std::ldexp(1.0, std::max(std::ilogb(most), -126) - 15);
      const double found = norm_up_ref(given.bytes.data(), count, largest);
      EXPECT_GE(found, norm * (1 - 1e-12)) << size << " " << count;
      EXPECT_LE(found, norm + (std::sqrt(count) + 2) * unit) << size << " " << count;
      EXPECT_GE(found, most);
      const double rms = rms_up_ref(given.bytes.data(), count, largest, 2.5);
      EXPECT_GE(rms, 2.5 * norm / std::sqrt(count) * (1 - 1e-6));
      EXPECT_LE(rms, (2.5 * norm / std::sqrt(count) + 2.5 * unit + unit / 128) * (1 + 1e-6));
    }
  }
}

TEST(GroupSums, NormOfOneValueIsExactWhereSixteenBitsHoldIt) {
  EXPECT_EQ(norm_up_ref(bytes_of({3, -4}).data(), 2, float32_bits(4.0f)),
            norm_up_ref(bytes_of({-3, 4}).data(), 2, float32_bits(4.0f)));
  EXPECT_LE(norm_up_ref(bytes_of({3, -4}).data(), 2, float32_bits(4.0f)), 5.001f);
}

TEST(GroupSums, MeansOfBothSigns) {
  const SignMeans means =
      sign_means_ref(bytes_of({1, -2, 3, -0.0f, -5}).data(), 5, float32_bits(5.0f));
  EXPECT_EQ(means.positive, 4.0f / 3);
  EXPECT_EQ(means.negative, 3.5f);
  // 2^-31 of the largest is the last unit, 2^-32 is nothing.
  EXPECT_EQ(sign_means_ref(bytes_of({-1, 0x1p-31f}).data(), 2, float32_bits(1.0f)).positive,
            0x1p-31f);
  EXPECT_EQ(sign_means_ref(bytes_of({-1, 0x1p-32f}).data(), 2, float32_bits(1.0f)).positive, 0);
  const SignMeans one = sign_means_ref(bytes_of({-7}).data(), 1, float32_bits(7.0f));
  EXPECT_EQ(one.positive, 0);
  EXPECT_EQ(one.negative, 7);
  for (const double size : {1e-44, 1e-38, 1.0, 3e36}) {
    const test::Tensor given = test::gradient_like(DType::kFloat32, 4096, 3, size);
    double sums[2] = {};
    double counts[2] = {};
    for (std::size_t i = 0; i < given.count; ++i) {
      sums[given.value(i) < 0] += std::abs(given.value(i));
      ++counts[given.value(i) < 0];
    }
    const SignMeans found = sign_means_ref(given.bytes.data(), given.count,
                                           largest_magnitude_ref(given.bytes.data(), given.count));
    const double slack = 0x1p-149 + 1e-6 * sums[0] / counts[0];
    EXPECT_NEAR(found.positive, sums[0] / counts[0], slack);
    EXPECT_NEAR(found.negative, sums[1] / counts[1], slack);
  }
}

}  // namespace
}  // namespace gradwire::internal
