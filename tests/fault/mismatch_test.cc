// Ranks that disagree: every rank is told the field, both values and the rank; no value changes.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "gradwire/collective.h"
#include "support/fault_transport.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

constexpr int kWorld = 3;
constexpr milliseconds kAllRaise{2000};

// How one rank calls.
struct Call {
  DType dtype = DType::kFloat32;
  std::vector<PartLayout> parts = {{3000, 0, 0}, {40000, 1, 0}, {7, 2, 0}};
  CollectiveOptions options;
  std::uint32_t segment_bytes = 1u << 16;
  milliseconds late{0};
  std::optional<ErrorFeedbackSettings> feedback;
};

Call usual_call() {
  Call call;
  call.options.codec = CodecSpec::parse("lossless").value();
  call.options.step = 5;
  return call;
}

struct Mismatch {
  const char* name;
  std::function<void(Call&)> make_odd;
  std::string field;
  std::string usual;
  std::string odd;
  std::function<void(Call&)> make_all = nullptr;
};

CodecSpec codec(std::string_view text) { return CodecSpec::parse(text).value(); }

void near_lossless_for_all(Call& call) { call.options.codec = codec("near_lossless"); }
void unbiased_for_all(Call& call) { call.options.codec = codec("unbiased"); }
void int8_for_all(Call& call) { call.options.codec = codec("block:bits=8,rounding=stochastic"); }
void feedback_for_all(Call& call) { call.feedback.emplace(); }

std::vector<Mismatch> mismatches() {
  return {
      {"Dtype", [](Call& call) { call.dtype = DType::kBFloat16; }, "dtype", "float32", "bfloat16"},
      {"Reduction", [](Call& call) { call.options.reduction = Reduction::kSum; }, "reduction",
       "avg", "sum"},
      {"Codec", [](Call& call) { call.options.codec = codec("none"); }, "codec", "lossless",
       "none"},
      {"Step", [](Call& call) { call.options.step = 6; }, "step", "5", "6"},
      {"CodecGroup", [](Call& call) { call.options.codec = codec("near_lossless:group=512"); },
       "group", "256", "512", near_lossless_for_all},
      {"CodecStep", [](Call& call) { call.options.codec = codec("near_lossless:step=0.5"); },
       "quantizer_step", "0.00575", "0.5", near_lossless_for_all},
      {"CodecBound", [](Call& call) { call.options.codec = codec("coarse"); }, "quantizer_step",
       "0.125", "1", unbiased_for_all},
      {"CodecScale", [](Call& call) { call.options.codec = codec("unbiased:scale=absmax"); },
       "scale", "rms", "absmax", unbiased_for_all},
      {"CodecOptions", [](Call& call) { call.options.codec = codec("unbiased:filter=on"); },
       "options", "none", "filter", unbiased_for_all},
      {"CodecBits",
       [](Call& call) { call.options.codec = codec("block:bits=6,rounding=stochastic"); }, "bits",
       "8", "6", int8_for_all},
      {"CodecRounding",
       [](Call& call) { call.options.codec = codec("block:bits=8,rounding=nearest"); }, "rounding",
       "stochastic", "nearest", int8_for_all},
      {"CodecSeed", [](Call& call) { call.options.codec.seed = 9; }, "seed", "0", "9",
       int8_for_all},
      {"CodecBlock", [](Call& call) { call.options.codec.block_values = 8192; }, "block_values",
       "262144", "8192"},
      {"OneValueMore", [](Call& call) { call.parts[2].values = 8; }, "value_count", "43007",
       "43008"},
      {"ManyValuesMore", [](Call& call) { call.parts[1].values = 80000; }, "value_count", "43007",
       "83007"},
      {"Nothing", [](Call& call) { call.parts.clear(); }, "value_count", "43007", "0"},
      {"PartCount",
       [](Call& call) {
         call.parts[2] = {3, 2, 0};
         call.parts.push_back({4, 3, 0});
       },
       "part_count", "3", "4"},
      {"SegmentBytes", [](Call& call) { call.segment_bytes = 4096; }, "segment_bytes", "65536",
       "4096"},
      {"ErrorFeedback", [](Call& call) { call.feedback.emplace(); }, "error_feedback", "off", "on"},
      {"FeedbackBeta", [](Call& call) { call.feedback->beta = 0.5f; }, "error_feedback.beta",
       "1.000000", "0.500000", feedback_for_all},
      {"FeedbackMomentum", [](Call& call) { call.feedback->momentum = 0.5f; },
       "error_feedback.momentum", "0.000000", "0.500000", feedback_for_all},
      {"FeedbackReset", [](Call& call) { call.feedback->reset_interval = 9; },
       "error_feedback.reset_interval", "0", "9", feedback_for_all},
  };
}

struct Outcome {
  Status status;
  milliseconds since_last_entry{0};
  bool untouched = false;
};

// Ranks call as `calls` says, all over slots of one size.
std::vector<Outcome> run_calls(const std::vector<Call>& calls) {
  const int world = static_cast<int>(calls.size());
  auto group = make_local_group(world, Communicator::slot_bytes({}));
  std::vector<Outcome> outcomes(calls.size());
  const Clock::time_point start = Clock::now();
  milliseconds last{0};
  for (const Call& call : calls) last = std::max(last, call.late);
  testing::run_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Call& call = calls[r];
    Communicator::Options options;
    options.segment_bytes = call.segment_bytes;
    Communicator communicator(std::move(group[r]), options);
    std::uint64_t count = 0;
    for (const PartLayout& part : call.parts) count += part.values;
    Bytes data(count * dtype_size(call.dtype));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 61);
    const Bytes before = data;
    std::this_thread::sleep_for(call.late);
    CollectiveOptions with = call.options;
    ErrorFeedback feedback(call.feedback.value_or(ErrorFeedbackSettings{}));
    if (call.feedback.has_value()) with.error_feedback = &feedback;
    outcomes[r].status =
        communicator.all_reduce({data.data(), count, call.dtype}, call.parts, with);
    outcomes[r].since_last_entry =
        std::chrono::duration_cast<milliseconds>(Clock::now() - start) - last;
    outcomes[r].untouched = data == before;
    if (!outcomes[r].status.ok()) {
      EXPECT_TRUE(communicator.retired());
    }
  });
  return outcomes;
}

void expect_mismatch(const std::vector<Outcome>& outcomes, const Mismatch& mismatch, int odd) {
  for (int rank = 0; rank < kWorld; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    SCOPED_TRACE(std::string(mismatch.name) + ", odd rank " + std::to_string(odd) + ", rank " +
                 std::to_string(rank));
    ASSERT_FALSE(outcome.status.ok());
    const Error& error = outcome.status.error();
    EXPECT_EQ(error.code, ErrorCode::kPeerMismatch) << error.to_string();
    EXPECT_EQ(error.field, mismatch.field) << error.to_string();
    EXPECT_EQ(error.mine, rank == odd ? mismatch.odd : mismatch.usual);
    EXPECT_EQ(error.theirs, rank == odd ? mismatch.usual : mismatch.odd);
    if (rank == odd) {
      EXPECT_EQ(error.rank, odd == 0 ? 1 : 0);
    } else {
      EXPECT_EQ(error.rank, odd);
    }
    EXPECT_EQ(error.sequence, 1u);
    EXPECT_TRUE(outcome.untouched);
    EXPECT_LT(outcome.since_last_entry, kAllRaise);
  }
}

std::vector<Call> calls_with(const Mismatch& mismatch, int odd) {
  std::vector<Call> calls(kWorld, usual_call());
  for (Call& call : calls) {
    if (mismatch.make_all) mismatch.make_all(call);
  }
  mismatch.make_odd(calls[static_cast<std::size_t>(odd)]);
  return calls;
}

TEST(Mismatch, EveryFieldOnEveryRank) {
  for (const Mismatch& mismatch : mismatches()) {
    for (int odd = 0; odd < kWorld; ++odd) {
      expect_mismatch(run_calls(calls_with(mismatch, odd)), mismatch, odd);
    }
  }
}

// A rank that comes when the others have given up is told as well.
TEST(Mismatch, LateRanksAreTold) {
  const Mismatch mismatch = mismatches()[2];
  for (int odd = 0; odd < kWorld; ++odd) {
    for (int late = 0; late < kWorld; ++late) {
      std::vector<Call> calls = calls_with(mismatch, odd);
      calls[static_cast<std::size_t>(late)].late = milliseconds(700);
      expect_mismatch(run_calls(calls), mismatch, odd);
    }
  }
}

// Parts that add up to the same: the place is named if it lies in the first segments.
TEST(Mismatch, PartsOfOtherSizes) {
  for (int odd = 0; odd < kWorld; ++odd) {
    std::vector<Call> calls(kWorld, usual_call());
    std::swap(calls[static_cast<std::size_t>(odd)].parts[0].values,
              calls[static_cast<std::size_t>(odd)].parts[2].values);
    for (const Outcome& outcome : run_calls(calls)) {
      ASSERT_FALSE(outcome.status.ok());
      const Error& error = outcome.status.error();
      EXPECT_EQ(error.code, ErrorCode::kPeerMismatch) << error.to_string();
      EXPECT_EQ(error.field, "parts") << error.to_string();
      EXPECT_NE(error.mine, error.theirs);
      EXPECT_TRUE(outcome.untouched);
      EXPECT_LT(outcome.since_last_entry, kAllRaise);
    }
  }
}

// Equal sizes in another order of parameters: only the names of the tensors differ.
TEST(Mismatch, ParametersInAnotherOrder) {
  std::vector<Call> calls(kWorld, usual_call());
  calls[1].parts[0].tensor = 1;
  calls[1].parts[1].tensor = 0;
  for (const Outcome& outcome : run_calls(calls)) {
    ASSERT_FALSE(outcome.status.ok());
    EXPECT_EQ(outcome.status.error().field, "parts");
    EXPECT_TRUE(outcome.untouched);
  }
}

// Two and two: everybody sees somebody who differs.
TEST(Mismatch, TwoAgainstTwo) {
  std::vector<Call> calls(4, usual_call());
  calls[2].options.step = calls[3].options.step = 8;
  const std::vector<Outcome> outcomes = run_calls(calls);
  const int ranks[] = {2, 2, 0, 0};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_FALSE(outcomes[rank].status.ok());
    EXPECT_EQ(outcomes[rank].status.error().field, "step");
    EXPECT_EQ(outcomes[rank].status.error().rank, ranks[rank]);
    EXPECT_TRUE(outcomes[rank].untouched);
  }
}

// A release with another format on one rank.
TEST(Mismatch, Version) {
  const auto communicators =
      testing::make_communicators(2, {}, [](int rank, std::unique_ptr<Transport> inner) {
        std::vector<testing::Fault> faults;
        if (rank == 1) {
          testing::Fault fault{testing::Fault::Kind::kReplace, 0, 0, 0, {}};
          fault.edit = [](Bytes& bytes) { bytes[4] = std::byte{9}; };
          faults.push_back(fault);
        }
        return std::make_unique<testing::FaultTransport>(std::move(inner), faults);
      });
  std::vector<Bytes> tensors(2, Bytes(4000));
  const auto outcomes = testing::all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, {});
  ASSERT_FALSE(outcomes[0].status.ok());
  const Error& error = outcomes[0].status.error();
  EXPECT_EQ(error.code, ErrorCode::kPeerMismatch) << error.to_string();
  EXPECT_EQ(error.field, "version");
  EXPECT_EQ(error.mine, "0");
  EXPECT_EQ(error.theirs, "9");
  EXPECT_EQ(error.rank, 1);
  ASSERT_FALSE(outcomes[1].status.ok());
  EXPECT_EQ(outcomes[1].status.error().mine, "9");
}

// After an error that one rank saw a call later than the others, a new group joins other calls.
TEST(Mismatch, CallsOutOfStep) {
  auto group = make_local_group(2, Communicator::slot_bytes({}));
  testing::run_ranks(2, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    Communicator::Options options;
    options.first_sequence = 7 + r;
    Communicator communicator(std::move(group[r]), options);
    EXPECT_EQ(communicator.next_sequence(), 7 + r);
    Bytes data(4000, static_cast<std::byte>(1 + rank));
    const Bytes before = data;
    const Status status = communicator.all_reduce({data.data(), 1000, DType::kFloat32}, {}, {});
    ASSERT_FALSE(status.ok());
    const Error& error = status.error();
    EXPECT_EQ(error.code, ErrorCode::kPeerMismatch) << error.to_string();
    EXPECT_EQ(error.field, "sequence") << error.to_string();
    EXPECT_EQ(error.mine, std::to_string(7 + rank));
    EXPECT_EQ(error.theirs, std::to_string(8 - rank));
    EXPECT_EQ(data, before);
  });
}

// One rank makes a mistake of its own before it sends anything.
TEST(Mismatch, WrongArgumentOnOneRank) {
  const auto communicators = testing::make_communicators(kWorld);
  std::vector<Status> statuses(kWorld);
  std::vector<milliseconds> elapsed(kWorld);
  std::vector<Status> next(kWorld);
  testing::run_ranks(kWorld, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    Bytes data(4000);
    const TensorView view{data.data(), 1000, DType::kFloat32};
    const std::vector<PartLayout> parts = {{rank == 1 ? 999u : 1000u, 0, 0}};
    const Clock::time_point start = Clock::now();
    statuses[r] = communicators[r]->all_reduce(view, parts, {});
    elapsed[r] = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    next[r] = communicators[r]->all_reduce(view, {}, {});
  });
  for (std::size_t r = 0; r < kWorld; ++r) {
    ASSERT_FALSE(statuses[r].ok());
    const Error& error = statuses[r].error();
    EXPECT_LT(elapsed[r], kAllRaise);
    ASSERT_FALSE(next[r].ok());
    if (r == 1) {
      EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
      // The others have given up the group because of this.
      EXPECT_EQ(next[r].error().code, ErrorCode::kPeerLost) << next[r].error().to_string();
    } else {
      EXPECT_EQ(error.code, ErrorCode::kPeerError) << error.to_string();
      EXPECT_EQ(error.rank, 1);
      EXPECT_EQ(error.field, "parts");
      EXPECT_NE(error.message.find("InvalidArgument"), std::string::npos) << error.message;
      EXPECT_EQ(next[r].error().code, ErrorCode::kRetired);
    }
  }
}

}  // namespace
}  // namespace gradwire
