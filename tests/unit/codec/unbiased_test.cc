// Codecs that claim E x' = x: errors over many seeds, in all and along the signs of the values,
// must stay within four standard deviations of 0. All seeds are fixed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Tensor;

// Sum of independent errors and of their squares.
struct Sum {
  double total = 0;
  double squares = 0;
  void add(double error) {
    total += error;
    squares += error * error;
  }
  double sigmas() const { return squares == 0 ? 0 : std::abs(total) / std::sqrt(squares); }
};

class UnbiasedCodec : public ::testing::TestWithParam<const char*> {};

TEST_P(UnbiasedCodec, ErrorsAverageOut) {
  constexpr std::size_t kValues = 1024;
  constexpr std::uint64_t kSeeds = 300;
  const Tensor given = test::gradient_like(DType::kFloat32, kValues, 7);
  Sum all;
  Sum outward;  // positive: magnitudes grow
  CodecSpec spec = test::spec_of(GetParam());
  for (spec.seed = 1; spec.seed <= kSeeds; ++spec.seed) {
    const Tensor decoded = test::round_trip(spec, {given})[0];
    Sum errors;  // of one frame: its values may depend on each other
    Sum signed_errors;
    for (std::size_t i = 0; i < kValues; ++i) {
      const double error = decoded.value(i) - given.value(i);
      errors.add(error);
      signed_errors.add(std::signbit(given.value(i)) ? -error : error);
    }
    all.add(errors.total);
    outward.add(signed_errors.total);
  }
  EXPECT_GT(all.squares, 0);
  EXPECT_LT(all.sigmas(), 4);
  EXPECT_LT(outward.sigmas(), 4);
}

// The check sees a bias: rounding to nearest moves the same values the same way each time.
TEST(UnbiasedCodecCheck, FindsABias) {
  const Tensor given = test::gradient_like(DType::kFloat32, 1024, 7);
  Sum outward;
  CodecSpec spec = test::spec_of("int4:rounding=nearest");
  for (spec.seed = 1; spec.seed <= 300; ++spec.seed) {
    const Tensor decoded = test::round_trip(spec, {given})[0];
    double total = 0;
    for (std::size_t i = 0; i < given.count; ++i) {
      const double error = decoded.value(i) - given.value(i);
      total += std::signbit(given.value(i)) ? -error : error;
    }
    outward.add(total);
  }
  EXPECT_GT(outward.sigmas(), 4);
}

INSTANTIATE_TEST_SUITE_P(Claims, UnbiasedCodec,
                         ::testing::Values("int4", "natural", "terngrad", "hadamard", "qsgd",
                                           "qsgd:bits=2,norm=max,coding=elias", "coarse",
                                           "unbiased", "error_bounded:scale=range,group=tensor",
                                           "near_lossless:mantissa=1,rounding=stochastic"),
                         [](const auto& one) {
                           return test::case_name({one.param, DType::kFloat32});
                         });

}  // namespace
}  // namespace gradwire
