// all_reduce by example: exact sums, arguments, statistics, shapes at the edge. Against a model
// and with random layouts: tests/property; with broken peers: tests/fault.
#include <gtest/gtest.h>
#include <pmmintrin.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "gradwire/collective.h"
#include "support/all_reduce_model.h"
#include "support/float_model.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using testing::all_reduce_ranks;
using testing::Bytes;
using testing::make_communicators;
using testing::model_all_reduce;
using testing::RankOutcome;

Bytes floats(const std::vector<float>& values) {
  Bytes bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> values_of(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

CollectiveOptions options_for(std::string_view codec, Reduction reduction = Reduction::kSum) {
  CollectiveOptions options;
  options.codec = CodecSpec::parse(codec).value();
  options.reduction = reduction;
  return options;
}

void expect_ok(const std::vector<RankOutcome>& outcomes) {
  for (const RankOutcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().to_string();
  }
}

TEST(AllReduce, SumsInRankOrder) {
  // Only (1e8 + 1) - 1e8 gives 0, because 1e8 + 1 is 1e8 in float32.
  const auto communicators = make_communicators(3);
  std::vector<Bytes> tensors = {floats({1e8f, 1}), floats({1, 2}), floats({-1e8f, 3})};
  expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options_for("none")));
  for (const Bytes& tensor : tensors) EXPECT_EQ(values_of(tensor), (std::vector<float>{0, 6}));
}

TEST(AllReduce, AveragesInTheAccumulator) {
  const auto communicators = make_communicators(4);
  // The sum does not fit float16, the mean does.
  std::vector<Bytes> tensors(4, Bytes(2));
  for (Bytes& tensor : tensors) testing::write_value(DType::kFloat16, tensor.data(), 0, 60000);
  expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat16, {},
                             options_for("none", Reduction::kAvg)));
  for (const Bytes& tensor : tensors) {
    EXPECT_EQ(testing::read_value(DType::kFloat16, tensor.data(), 0), 60000);
  }
}

TEST(AllReduce, SumOfMinusZerosIsMinusZero) {
  const auto communicators = make_communicators(2);
  std::vector<Bytes> tensors(2, floats({-0.0f, 0.0f}));
  expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options_for("none")));
  EXPECT_TRUE(std::signbit(values_of(tensors[0])[0]));
  EXPECT_FALSE(std::signbit(values_of(tensors[1])[1]));
}

TEST(AllReduce, EmptyTensor) {
  for (int world = 1; world <= 4; ++world) {
    const auto communicators = make_communicators(world);
    std::vector<Bytes> tensors(static_cast<std::size_t>(world));
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      expect_ok(all_reduce_ranks(communicators, tensors, dtype, {}, options_for("none")));
    }
  }
}

TEST(AllReduce, OneRankCodesToo) {
  const auto communicators = make_communicators(1);
  const std::vector<float> values = {1.0f, 1.0f + 0x1p-20f, -3.0f};
  std::vector<Bytes> tensors = {floats(values)};
  const auto outcomes = all_reduce_ranks(communicators, tensors, DType::kFloat32, {},
                                         options_for("cast:dtype=bf16", Reduction::kAvg));
  expect_ok(outcomes);
  EXPECT_EQ(values_of(tensors[0]), (std::vector<float>{1.0f, 1.0f, -3.0f}));
  EXPECT_EQ(outcomes[0].stats.encoded_bytes_out, 0u);
  EXPECT_EQ(outcomes[0].stats.encoded_bytes_in, 0u);
}

TEST(AllReduce, UnalignedTensor) {
  const auto communicators = make_communicators(2);
  std::vector<Bytes> storage(2, Bytes(4 * 1000 + 1));
  testing::run_ranks(2, [&](int rank) {
    std::byte* data = storage[static_cast<std::size_t>(rank)].data() + 1;
    for (std::size_t i = 0; i < 1000; ++i) testing::write_value(DType::kFloat32, data, i, rank + 1);
    const Status status = communicators[static_cast<std::size_t>(rank)]->all_reduce(
        {data, 1000, DType::kFloat32}, {}, options_for("none"));
    EXPECT_TRUE(status.ok());
  });
  for (const Bytes& bytes : storage) {
    EXPECT_EQ(testing::read_value(DType::kFloat32, bytes.data() + 1, 0), 3);
    EXPECT_EQ(testing::read_value(DType::kFloat32, bytes.data() + 1, 999), 3);
  }
}

TEST(AllReduce, NonFiniteOnOneRankIsNonFiniteOnAll) {
  for (const char* codec : {"none", "cast:dtype=bf16"}) {
    const auto communicators = make_communicators(3);
    const float inf = std::numeric_limits<float>::infinity();
    std::vector<Bytes> tensors(3, floats(std::vector<float>(1000, 1.0f)));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(tensors[1].data() + 4 * 10, &nan, 4);
    std::memcpy(tensors[1].data() + 4 * 500, &inf, 4);
    std::memcpy(tensors[2].data() + 4 * 990, &inf, 4);
    const auto outcomes =
        all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options_for(codec));
    expect_ok(outcomes);
    std::uint64_t nonfinite = 0;
    for (const RankOutcome& outcome : outcomes) nonfinite += outcome.stats.nonfinite;
    EXPECT_EQ(nonfinite, 3u);
    for (const Bytes& tensor : tensors) {
      EXPECT_TRUE(std::isnan(values_of(tensor)[10]));
      EXPECT_EQ(values_of(tensor)[500], inf);
      EXPECT_EQ(values_of(tensor)[990], inf);
      EXPECT_EQ(values_of(tensor)[0], 3.0f);
    }
  }
}

TEST(AllReduce, CallersFloatingPointModeHasNoSay) {
  const auto run = [](bool flush) {
    const auto communicators = make_communicators(2);
    std::vector<Bytes> tensors(2, floats({0x1p-140f, 0x1p-126f, 3e-39f}));
    testing::run_ranks(2, [&](int rank) {
      const unsigned saved = _mm_getcsr();
      if (flush) _mm_setcsr(saved | 0x8040u | 0x6000u);  // flush, zeros, towards zero
      const auto r = static_cast<std::size_t>(rank);
      const Status status = communicators[r]->all_reduce({tensors[r].data(), 3, DType::kFloat32},
                                                         {}, options_for("none", Reduction::kAvg));
      if (flush) {
        EXPECT_EQ(_mm_getcsr() & 0xE040u, 0xE040u) << "put back";
      }
      _mm_setcsr(saved);
      EXPECT_TRUE(status.ok());
    });
    return tensors;
  };
  EXPECT_EQ(run(true), run(false));
  EXPECT_EQ(values_of(run(true)[1])[0], 0x1p-140f);
}

TEST(AllReduce, StatisticsAddUp) {
  constexpr std::size_t kValues = 100000;
  const auto communicators = make_communicators(4);
  std::vector<Bytes> tensors(4, floats(std::vector<float>(kValues, 1.0f + 0x1p-9f)));
  CollectiveOptions options = options_for("cast:dtype=bf16", Reduction::kAvg);
  options.measure_error = true;
  const auto outcomes = all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options);
  expect_ok(outcomes);
  CollectiveStats sum;
  for (const RankOutcome& outcome : outcomes) sum.add(outcome.stats);
  EXPECT_EQ(sum.calls, 4u);
  EXPECT_EQ(sum.values, 4 * kValues);
  // Every value goes to its owner from three ranks and from the owner to three ranks.
  EXPECT_EQ(sum.raw_bytes_out, 2 * 3 * kValues * 4);
  EXPECT_EQ(sum.encoded_bytes_out, sum.encoded_bytes_in);
  EXPECT_GT(sum.encoded_bytes_out, sum.raw_bytes_out / 2);
  EXPECT_LT(sum.encoded_bytes_out, sum.raw_bytes_out / 2 + 4 * 6 * 300);
  EXPECT_EQ(sum.fixed_blocks, 4u * 4u) << "three contributions and a result per rank";
  EXPECT_EQ(sum.coded_blocks + sum.stored_blocks + sum.outliers + sum.nonfinite, 0u);
  EXPECT_GT(sum.total_seconds, 0.0);
  EXPECT_GE(sum.total_seconds, sum.wait_seconds);
  // Each rank sends three quarters of its values; 1 + 2^-9 becomes 1.
  EXPECT_DOUBLE_EQ(sum.error_squares, 3 * kValues * 0x1p-18);
  EXPECT_DOUBLE_EQ(sum.value_squares, 3 * kValues * (1.0 + 0x1p-9) * (1.0 + 0x1p-9));
}

TEST(AllReduce, CallsFollowEachOther) {
  const auto communicators = make_communicators(3);
  for (int call = 1; call <= 20; ++call) {
    const std::size_t count = static_cast<std::size_t>(call) * 1777;
    std::vector<Bytes> tensors(3, floats(std::vector<float>(count, 1.0f)));
    expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options_for("none")));
    EXPECT_EQ(values_of(tensors[2])[count - 1], 3.0f);
    EXPECT_EQ(communicators[1]->next_sequence(), static_cast<std::uint64_t>(call) + 1);
  }
  EXPECT_FALSE(communicators[0]->retired());
}

TEST(AllReduce, WrongArgumentsAreNamed) {
  struct Case {
    const char* field;
    ErrorCode code;
    DType dtype;
    std::vector<PartLayout> parts;
    Reduction reduction;
    const char* codec;
  };
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const std::vector<Case> cases = {
      {"dtype", ErrorCode::kUnsupportedDType, DType::kInt32, {}, Reduction::kSum, "none"},
      {"dtype", ErrorCode::kUnsupportedDType, DType::kBFloat16, {}, Reduction::kSum, "natural"},
      {"reduction", ErrorCode::kInvalidArgument, DType::kFloat32, {}, Reduction::kNone, "none"},
      {"parts", ErrorCode::kInvalidArgument, DType::kFloat32, {{1, 0, 0}}, Reduction::kSum, "none"},
      {"parts",
       ErrorCode::kInvalidArgument,
       DType::kFloat32,
       {{8, 0, 0}, {1, 0, 0}},
       Reduction::kSum,
       "none"},
      {"parts",
       ErrorCode::kInvalidArgument,
       DType::kFloat32,
       {{huge, 0, 0}, {9, 0, 0}},
       Reduction::kSum,
       "none"},
  };
  for (const int world : {1, 2}) {
    const auto communicators = make_communicators(world);
    for (const Case& wrong : cases) {
      std::vector<Bytes> tensors(static_cast<std::size_t>(world),
                                 Bytes(8 * dtype_size(wrong.dtype)));
      const auto outcomes = all_reduce_ranks(communicators, tensors, wrong.dtype, wrong.parts,
                                             options_for(wrong.codec, wrong.reduction));
      for (const RankOutcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.status.ok());
        EXPECT_EQ(outcome.status.error().code, wrong.code) << outcome.status.error().to_string();
        EXPECT_EQ(outcome.status.error().field, wrong.field);
        EXPECT_EQ(outcome.stats.calls, 0u);
      }
    }
    // All ranks made the same mistakes, so the group lives on.
    std::vector<Bytes> tensors(static_cast<std::size_t>(world), floats({1, 2}));
    expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options_for("none")));
    EXPECT_EQ(values_of(tensors[0])[1], 2.0f * static_cast<float>(world));
  }
}

TEST(AllReduce, CodecMadeByHandIsChecked) {
  const auto communicators = make_communicators(2);
  std::vector<Bytes> tensors(2, floats({1, 2}));
  CollectiveOptions options = options_for("none");
  options.codec.block_values = 5;
  for (const RankOutcome& outcome :
       all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options)) {
    ASSERT_FALSE(outcome.status.ok());
    EXPECT_EQ(outcome.status.error().code, ErrorCode::kOutOfRange);
  }
  EXPECT_FALSE(communicators[0]->retired());
}

TEST(AllReduce, ExtremeDeadlines) {
  const auto communicators = make_communicators(2);
  std::vector<Bytes> tensors(2, floats({1, 2}));
  CollectiveOptions options = options_for("none");
  options.deadline = std::chrono::milliseconds::max();
  expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options));
  options.deadline = std::chrono::milliseconds::min();
  const Status status =
      communicators[0]->all_reduce({tensors[0].data(), 2, DType::kFloat32}, {}, options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded);
}

TEST(AllReduce, WrongGroupsAreNamed) {
  Bytes tensor = floats({1});
  const TensorView data{tensor.data(), 1, DType::kFloat32};
  Communicator none(nullptr, {});
  EXPECT_EQ(none.all_reduce(data, {}, options_for("none")).error().code, ErrorCode::kRetired);
  EXPECT_EQ(none.world(), 0);
  for (const std::uint32_t segment_bytes : {0u, 2047u, (1u << 30) + 1}) {
    Communicator::Options options;
    options.segment_bytes = segment_bytes;
    Communicator communicator(std::move(make_local_group(1, 1 << 20)[0]), options);
    const Status status = communicator.all_reduce(data, {}, options_for("none"));
    ASSERT_FALSE(status.ok()) << segment_bytes;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, "segment_bytes");
  }
  auto group = make_local_group(2, Communicator::slot_bytes({}) - 1);
  Communicator communicator(std::move(group[0]), {});
  const Status status = communicator.all_reduce(data, {}, options_for("none"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().field, "slot_bytes");
}

TEST(AllReduce, MoreParametersThanASegmentHolds) {
  const auto communicators = make_communicators(2);
  std::vector<PartLayout> parts;
  for (std::uint32_t p = 0; p < 5000; ++p) parts.push_back({p % 3, p, 0});
  std::uint64_t count = 0;
  for (const PartLayout& part : parts) count += part.values;
  std::vector<Bytes> tensors(2, floats(std::vector<float>(count, 2.0f)));
  expect_ok(all_reduce_ranks(communicators, tensors, DType::kFloat32, parts, options_for("none")));
  for (const float value : values_of(tensors[1])) ASSERT_EQ(value, 4.0f);
}

TEST(CollectiveStats, Add) {
  CollectiveStats a;
  a.calls = 1;
  a.error_squares = 2.5;
  CollectiveStats sum;
  sum.add(a);
  sum.add(a);
  EXPECT_EQ(sum.calls, 2u);
  EXPECT_EQ(sum.error_squares, 5.0);
}

}  // namespace
}  // namespace gradwire
