#include "quantize/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "core/float_bits.h"

namespace gradwire::internal {
namespace {

TEST(Hadamard, RowsAreThoseOfSylvester) {
  for (const std::size_t count : {1u, 2u, 4u, 16u, 64u}) {
    for (std::size_t column = 0; column < count; ++column) {
      std::vector<float> values(count, 0.0f);
      values[column] = 1;
      hadamard_ref(values.data(), count);
      for (std::size_t row = 0; row < count; ++row) {
        EXPECT_EQ(values[row], std::popcount(row & column) % 2 == 0 ? 1 : -1);
      }
    }
  }
}

TEST(Hadamard, TwiceIsTheCount) {
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) - 50;
  std::vector<float> twice = values;
  hadamard_ref(twice.data(), twice.size());
  hadamard_ref(twice.data(), twice.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(twice[i], 256 * values[i]);
}

TEST(Hadamard, NothingNonFiniteIsLost) {
  const float huge = float32_from_bits(0x7F7FFFFFu);
  for (const float special : {float32_from_bits(kFloat32Inf), float32_from_bits(0x7FC00000u)}) {
    std::vector<float> values(32, 1.0f);
    values[5] = special;
    hadamard_ref(values.data(), values.size());
    for (const float value : values) {
      EXPECT_GE(float32_bits(value) & kFloat32Magnitude, kFloat32Inf);
    }
  }
  std::vector<float> values(16, huge);  // sums overflow
  hadamard_ref(values.data(), values.size());
  EXPECT_GE(float32_bits(values[0]) & kFloat32Magnitude, kFloat32Inf);
}

TEST(Hadamard, SignsFlip) {
  std::vector<float> values = {1, -2, 0, -0.0f};
  const std::uint32_t signs[] = {0x80000000u, 0x80000000u, 0x80000000u, 0};
  flip_signs_ref(values.data(), signs, values.size());
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(float32_bits(values[2]), 0x80000000u);
  EXPECT_EQ(float32_bits(values[3]), 0x80000000u);
}

}  // namespace
}  // namespace gradwire::internal
