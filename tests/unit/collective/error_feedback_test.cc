// Error feedback by example: the kernels, what is kept and what is not, arguments, failures.
// Against a model: tests/property.
#include "gradwire/error_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gradwire/collective.h"
#include "support/all_reduce_model.h"
#include "support/allocation_counter.h"
#include "support/float_model.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using testing::Bytes;
using testing::read_value;
using testing::write_value;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Bytes bytes_of(DType dtype, const std::vector<double>& values) {
  Bytes bytes(values.size() * dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) write_value(dtype, bytes.data(), i, values[i]);
  return bytes;
}

CollectiveOptions options_for(std::string_view codec) {
  CollectiveOptions options;
  options.codec = CodecSpec::parse(codec).value();
  return options;
}

// A group of ranks with one ErrorFeedback each.
struct Group {
  explicit Group(int world, const ErrorFeedbackSettings& settings = {})
      : communicators(testing::make_communicators(world)) {
    for (int rank = 0; rank < world; ++rank) feedbacks.emplace_back(settings);
  }

  std::vector<Status> all_reduce(std::vector<Bytes>& tensors, DType dtype,
                                 const std::vector<PartLayout>& parts,
                                 const std::vector<CollectiveOptions>& options) {
    std::vector<Status> statuses(feedbacks.size());
    testing::run_ranks(static_cast<int>(feedbacks.size()), [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      CollectiveOptions call = options[r % options.size()];
      call.error_feedback = &feedbacks[r];
      statuses[r] = communicators[r]->all_reduce(
          {tensors[r].data(), tensors[r].size() / dtype_size(dtype), dtype}, parts, call);
    });
    return statuses;
  }

  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<ErrorFeedback> feedbacks;
};

// Residuals of the first part.
std::vector<double> kept(const ErrorFeedback& feedback) {
  std::vector<double> values;
  const auto all = feedback.residuals();
  for (std::uint64_t i = 0; !all.empty() && i < all[0].values.count; ++i) {
    const auto* data = static_cast<const std::byte*>(all[0].values.data);
    values.push_back(read_value(all[0].values.dtype, data, i));
  }
  return values;
}

// A value that a cast takes away every time, 1 + 2^-10, arrives in the long run: what rank 0 has
// sent after n steps is n times it, less what it still keeps.
TEST(ErrorFeedback, ErrorsDoNotPileUp) {
  Group group(2);
  const double x = 1 + 0x1p-10;
  double arrived = 0;
  for (int step = 1; step <= 100; ++step) {
    std::vector<Bytes> tensors(2, bytes_of(DType::kFloat32, std::vector<double>(512, x)));
    // Rank 1 owns the second half and gives nothing to it: the sum is what rank 0 has sent.
    std::fill_n(tensors[1].begin(), tensors[1].size(), std::byte{0});
    auto options = options_for("cast:dtype=bf16");
    options.reduction = Reduction::kSum;
    for (const Status& status : group.all_reduce(tensors, DType::kFloat32, {}, {options})) {
      ASSERT_TRUE(status.ok()) << status.error().to_string();
    }
    arrived += read_value(DType::kFloat32, tensors[0].data(), 511);
    EXPECT_NEAR(arrived, step * x - kept(group.feedbacks[0])[511], 1e-5 * step);
    EXPECT_LE(std::abs(kept(group.feedbacks[0])[511]), 0x1p-8);
    EXPECT_EQ(kept(group.feedbacks[0])[0], 0) << "its own shard enters raw";
  }
  EXPECT_NEAR(arrived, 100 * x, 0x1p-8 + 1e-3);
  EXPECT_GT(arrived, 100 + 0.05) << "without feedback it were 100";
}

TEST(ErrorFeedback, ExactCodecsAreUntouched) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    Group with(3);
    const auto without = testing::make_communicators(3);
    for (const char* codec : {"none", "lossless"}) {
      std::vector<Bytes> tensors;
      for (int rank = 0; rank < 3; ++rank) {
        std::vector<double> values(3000, 0.25 * (rank + 1));
        values[0] = -0.0, values[1000] = kInf, values[1001] = kNan, values[2999] = -0.0;
        tensors.push_back(bytes_of(dtype, values));
      }
      std::vector<Bytes> plain = tensors;
      testing::all_reduce_ranks(without, plain, dtype, {}, options_for(codec));
      with.all_reduce(tensors, dtype, {}, {options_for(codec)});
      EXPECT_EQ(tensors, plain);
      for (const ErrorFeedback& feedback : with.feedbacks) {
        EXPECT_EQ(kept(feedback), std::vector<double>(3000, 0.0));
      }
    }
  }
}

TEST(ErrorFeedback, OneRankKeepsNothing) {
  Group group(1);
  std::vector<Bytes> tensors = {bytes_of(DType::kFloat32, {1 + 0x1p-10, 3})};
  const auto statuses =
      group.all_reduce(tensors, DType::kFloat32, {}, {options_for("cast:dtype=bf16")});
  ASSERT_TRUE(statuses[0].ok());
  EXPECT_EQ(kept(group.feedbacks[0]), (std::vector<double>{0, 0}));
}

TEST(ErrorFeedback, EmptyPartsHaveNone) {
  Group group(2);
  std::vector<Bytes> tensors(2);
  for (const auto& parts : {std::vector<PartLayout>{}, {{0, 1, 0}, {0, 1, 0}}}) {
    for (const Status& status :
         group.all_reduce(tensors, DType::kFloat32, parts, {options_for("int8")})) {
      ASSERT_TRUE(status.ok()) << status.error().to_string();
    }
  }
  EXPECT_TRUE(group.feedbacks[0].residuals().empty());
}

TEST(ErrorFeedback, RestoredResidualsGoOn) {
  Group whole(2);
  Group resumed(2);
  const std::vector<PartLayout> parts = {{700, 5, 0}, {900, 2, 64}};
  const auto step = [&](Group& group, int number) {
    std::vector<Bytes> tensors;
    for (int rank = 0; rank < 2; ++rank) {
      std::mt19937_64 random(static_cast<std::uint64_t>(10 * number + rank));
      tensors.push_back(testing::random_tensor(random, DType::kFloat32, 1600, false));
    }
    group.all_reduce(tensors, DType::kFloat32, parts, {options_for("int4")});
    return tensors;
  };
  for (int number = 0; number < 3; ++number) step(whole, number);
  for (std::size_t r = 0; r < 2; ++r) {
    for (const auto& residual : whole.feedbacks[r].residuals()) {
      ASSERT_TRUE(resumed.feedbacks[r].restore(residual).ok());
    }
    EXPECT_EQ(resumed.feedbacks[r].residuals()[0].tensor, 2u) << "in order";
    EXPECT_EQ(resumed.feedbacks[r].residuals()[0].first_index, 64u);
  }
  EXPECT_EQ(step(whole, 3), step(resumed, 3));
  whole.feedbacks[0].reset();
  whole.feedbacks[1].reset();
  EXPECT_TRUE(whole.feedbacks[0].residuals().empty());
  EXPECT_NE(step(whole, 4), step(resumed, 4));
  ErrorFeedback moved = std::move(resumed.feedbacks[0]);
  EXPECT_EQ(moved.residuals().size(), 2u);
}

TEST(ErrorFeedback, WrongResidualsAreRefused) {
  ErrorFeedback feedback;
  const float values[] = {1, kNan};
  const float infinite[] = {-kInf};
  EXPECT_EQ(feedback.restore({0, 0, {values, 2, DType::kFloat32}, {}}).error().field, "values");
  EXPECT_EQ(feedback.restore({0, 0, {infinite, 1, DType::kFloat32}, {}}).error().field, "values");
  EXPECT_EQ(feedback.restore({0, 0, {values, 2, DType::kFloat16}, {}}).error().code,
            ErrorCode::kUnsupportedDType);
  EXPECT_EQ(feedback.restore({0, 0, {nullptr, 2, DType::kFloat32}, {}}).error().field, "data");
  EXPECT_TRUE(feedback.residuals().empty());
  EXPECT_TRUE(feedback.restore({0, 0, {nullptr, 0, DType::kFloat32}, {}}).ok());
  EXPECT_TRUE(feedback.restore({0, 0, {values, 1, DType::kFloat32}, {}}).ok());
  EXPECT_EQ(kept(feedback), std::vector<double>{1});
}

// Changed and doubled parts are errors of the call, on every rank, and change nothing.
TEST(ErrorFeedback, WrongPartsAreNamed) {
  struct Case {
    const char* field;
    DType dtype;
    std::vector<PartLayout> parts;
  };
  const std::vector<Case> cases = {
      {"values", DType::kFloat32, {{500, 7, 0}}},
      {"dtype", DType::kFloat64, {{600, 7, 0}}},
      {"parts", DType::kFloat32, {{300, 1, 0}, {300, 1, 0}}},
  };
  Group group(2);
  std::vector<Bytes> first(2, bytes_of(DType::kFloat32, std::vector<double>(600, 1 + 0x1p-10)));
  const CollectiveOptions options = options_for("cast:dtype=bf16");
  ASSERT_TRUE(group.all_reduce(first, DType::kFloat32, {{600, 7, 0}}, {options})[0].ok());
  const std::vector<double> before = kept(group.feedbacks[0]);
  EXPECT_EQ(before.back(), 0x1p-10);
  for (const Case& wrong : cases) {
    std::uint64_t count = 0;
    for (const PartLayout& part : wrong.parts) count += part.values;
    std::vector<Bytes> tensors(2, bytes_of(wrong.dtype, std::vector<double>(count, 2)));
    for (const Status& status :
         group.all_reduce(tensors, wrong.dtype, wrong.parts, {options_for("none")})) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
      EXPECT_EQ(status.error().field, wrong.field) << status.error().to_string();
    }
    EXPECT_EQ(tensors[0], bytes_of(wrong.dtype, std::vector<double>(count, 2)));
    EXPECT_EQ(kept(group.feedbacks[0]), before) << wrong.field;
  }
  EXPECT_EQ(group.feedbacks[0].residuals().size(), 1u) << "nothing new from a wrong call";
  EXPECT_FALSE(group.communicators[0]->retired());
}

TEST(ErrorFeedback, AFailedExchangeKeepsNothing) {
  Group group(2);
  const CollectiveOptions bf16 = options_for("cast:dtype=bf16");
  std::vector<Bytes> tensors(2, bytes_of(DType::kFloat32, std::vector<double>(600, 1 + 0x1p-10)));
  ASSERT_TRUE(group.all_reduce(tensors, DType::kFloat32, {}, {bf16})[0].ok());
  ASSERT_EQ(kept(group.feedbacks[0]).back(), 0x1p-10);
  std::vector<Bytes> before = tensors;
  const auto statuses = group.all_reduce(tensors, DType::kFloat32, {}, {bf16, options_for("int8")});
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_FALSE(statuses[r].ok());
    EXPECT_EQ(statuses[r].error().code, ErrorCode::kPeerMismatch);
    EXPECT_EQ(kept(group.feedbacks[r]), std::vector<double>(600, 0.0));
  }
  EXPECT_EQ(tensors, before);
}

TEST(ErrorFeedback, LaterCallsAllocateNothingForIt) {
  const std::vector<PartLayout> parts = {{100, 0, 0}, {5000, 1, 0}, {1, 2, 0}};
  std::vector<ErrorFeedback> feedbacks(2);
  const auto allocations_of = [&](bool with_feedback) {
    const auto communicators = testing::make_communicators(2);
    std::uint64_t counted = 0;
    testing::run_ranks(2, [&](int rank) {
      CollectiveOptions options = options_for("near_lossless");
      options.measure_error = true;  // needs the decoded values either way
      if (with_feedback) options.error_feedback = &feedbacks[static_cast<std::size_t>(rank)];
      std::vector<float> values(5101, 1.1f);
      for (int call = 0; call < 4; ++call) {
        test::reset_allocations();
        ASSERT_TRUE(communicators[static_cast<std::size_t>(rank)]
                        ->all_reduce({values.data(), 5101, DType::kFloat32}, parts, options)
                        .ok());
        if (rank == 0) counted = test::allocations().calls;
      }
    });
    return counted;
  };
  const std::uint64_t without = allocations_of(false);
  EXPECT_EQ(allocations_of(true), without);
  EXPECT_EQ(feedbacks[0].residuals().size(), 3u);
}

// What is measured is the error of the codec on what was sent, not the feedback.
TEST(ErrorFeedback, MeasuredErrorIsTheCodecs) {
  Group group(2);
  CollectiveOptions options = options_for("none");
  options.measure_error = true;
  CollectiveStats stats;
  const std::vector<float> residual(600, 5.0f);
  ASSERT_TRUE(group.feedbacks[0].restore({0, 0, {residual.data(), 600, DType::kFloat32}, {}}).ok());
  testing::run_ranks(2, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    CollectiveOptions call = options;
    call.error_feedback = &group.feedbacks[r];
    std::vector<float> values(600, 1.0f);
    ASSERT_TRUE(group.communicators[r]
                    ->all_reduce({values.data(), 600, DType::kFloat32}, {}, call,
                                 rank == 0 ? &stats : nullptr)
                    .ok());
    // (1 + 5 + 1) / 2: the residuals of the own shard are sent along once as well.
    EXPECT_EQ(values[0], 3.5f);
    EXPECT_EQ(values[599], 3.5f);
  });
  EXPECT_EQ(stats.error_squares, 0);
  EXPECT_GT(stats.value_squares, 0);
  EXPECT_EQ(kept(group.feedbacks[0]), std::vector<double>(600, 0.0));
}

}  // namespace
}  // namespace gradwire
