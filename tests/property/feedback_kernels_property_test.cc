// What error feedback is for: what has been sent and what is still kept add up to what was given.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codec/accumulate.h"
#include "codec/feedback_kernels.h"
#include "core/fp_environment.h"
#include "support/all_reduce_model.h"
#include "support/codec_cases.h"
#include "support/float_model.h"

namespace gradwire {
namespace {

using test::Tensor;
using testing::read_value;

constexpr std::size_t kCount = 777;
constexpr int kSteps = 12;

// Sums of one codec over some steps, in float64.
struct Totals {
  std::vector<double> given = std::vector<double>(kCount, 0.0);
  std::vector<double> sent = std::vector<double>(kCount, 0.0);
  std::vector<double> kept = std::vector<double>(kCount, 0.0);
  std::vector<double> rounding = std::vector<double>(kCount, 0.0);  // bound of all rounding errors
};

// Multiples of 1/256 below 8, rounded to the type.
Tensor make_values(DType dtype, std::mt19937_64& random) {
  Tensor values(dtype, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double x = (static_cast<double>(random() % 4096) - 2048) / 256;
    testing::write_value(dtype, values.bytes.data(), i, x);
  }
  return values;
}

Totals run_steps(const std::string& codec, DType dtype, std::mt19937_64& random) {
  const internal::FpEnvironment environment;
  const CodecSpec spec = test::spec_of(codec);
  const DType kept_dtype = *internal::accumulator_dtype(dtype);
  Tensor residuals(kept_dtype, kCount);
  const internal::FeedbackState state{residuals.bytes.data(), nullptr};
  Totals totals;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor values = make_values(dtype, random);
    std::vector<Tensor> sent = {Tensor(dtype, kCount)};
    internal::compensate(dtype, {}, values.bytes.data(), state, sent[0].bytes.data(), kCount);
    const std::vector<Tensor> decoded = test::round_trip(spec, sent);
    for (std::size_t i = 0; i < kCount; ++i) {
      totals.given[i] += values.value(i);
      totals.sent[i] += decoded[0].value(i);
      // h = x + e rounded, then h - d rounded, to 24 bits each.
      const double h = values.value(i) + read_value(kept_dtype, residuals.bytes.data(), i);
      totals.rounding[i] += 0x1p-24 * (std::abs(h) + std::abs(h - decoded[0].value(i)) + 0x1p-100);
    }
    internal::keep_rest(dtype, {}, values.bytes.data(), decoded[0].bytes.data(), state, kCount);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    totals.kept[i] = read_value(kept_dtype, residuals.bytes.data(), i);
  }
  return totals;
}

// Here no sum is rounded at all: values, casts and steps are multiples of 2^-8 or coarser, and sums
// of twelve are below 2^7, so 16 bits are enough.
TEST(FeedbackKernelsProperty, NothingIsLost) {
  std::mt19937_64 random(testing::test_seed("FeedbackKernelsProperty.NothingIsLost"));
  bool lost = false;
  for (const char* codec : {"top_k:fraction=0.01,dtype=fp32", "top_k:fraction=0.1",
                            "cast:dtype=bf16", "cast:dtype=fp16", "near_lossless:step=4", "none"}) {
    SCOPED_TRACE(codec);
    const Totals totals = run_steps(codec, DType::kFloat32, random);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(totals.sent[i] + totals.kept[i], totals.given[i]) << i;
      lost = lost || totals.kept[i] != 0;
    }
  }
  EXPECT_TRUE(lost) << "no codec took anything: this test shows nothing";
}

// Every codec and type: as exact as float32 is.
TEST(FeedbackKernelsProperty, SumsStayWithinRounding) {
  std::mt19937_64 random(testing::test_seed("FeedbackKernelsProperty.SumsStayWithinRounding"));
  for (const auto& [codec, dtype] : test::floating_cases()) {
    SCOPED_TRACE(codec + " " + std::string(dtype_name(dtype)));
    const Totals totals = run_steps(codec, dtype, random);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(totals.sent[i] + totals.kept[i], totals.given[i], totals.rounding[i]) << i;
    }
  }
}

}  // namespace
}  // namespace gradwire
