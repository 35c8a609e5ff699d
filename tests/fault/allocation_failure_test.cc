// Each allocation that one rank makes in all_reduce fails once, alone and with all that follow: an
// error on every rank, never an exception, nobody waits for the deadline.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "gradwire/collective.h"
#include "support/allocation_counter.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr int kWorld = 2;
constexpr std::size_t kValues = 20000;
constexpr milliseconds kDeadline{20000};
constexpr milliseconds kInTime{5000};
constexpr std::uint64_t kMostAllocations = 2000;

struct Outcome {
  std::vector<Status> statuses = std::vector<Status>(kWorld);
  bool failed = false;  // an allocation did
  bool thrown = false;
  Clock::duration elapsed{};
};

// One all_reduce; on rank 0 allocation `number` fails.
Outcome run(const char* codec, std::uint64_t number, bool all_after) {
  Outcome outcome;
  Communicator::Options options;
  options.segment_bytes = 16384;  // 3 segments per shard
  const auto communicators = testing::make_communicators(kWorld, options);
  CollectiveOptions call;
  call.codec = *CodecSpec::parse(codec);
  call.deadline = kDeadline;
  std::vector<std::vector<float>> tensors(kWorld, std::vector<float>(kValues, 1.5f));
  const Clock::time_point start = Clock::now();
  testing::run_ranks(kWorld, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const TensorView data{tensors[r].data(), kValues, DType::kFloat32};
    if (rank == 0) test::fail_allocations(number, all_after);
    try {
      outcome.statuses[r] = communicators[r]->all_reduce(data, {}, call);
    } catch (...) {
      outcome.thrown = true;
    }
    if (rank == 0) outcome.failed = test::fail_allocations(0);
  });
  outcome.elapsed = Clock::now() - start;
  return outcome;
}

void expect_error_on_every_rank(const char* codec, bool all_after) {
  std::uint64_t number = 1;
  for (; number < kMostAllocations; ++number) {
    SCOPED_TRACE((all_after ? "from allocation " : "allocation ") + std::to_string(number));
    const Outcome outcome = run(codec, number, all_after);
    ASSERT_FALSE(outcome.thrown);
    ASSERT_LT(outcome.elapsed, kInTime);
    if (!outcome.failed) {
      ASSERT_TRUE(outcome.statuses[0].ok() && outcome.statuses[1].ok());
      break;
    }
    ASSERT_FALSE(outcome.statuses[0].ok());
    EXPECT_EQ(outcome.statuses[0].error().code, ErrorCode::kOutOfMemory)
        << outcome.statuses[0].error().to_string();
    ASSERT_FALSE(outcome.statuses[1].ok());
  }
  EXPECT_GT(number, 1u) << "nothing was allocated";
  EXPECT_LT(number, kMostAllocations);
}

TEST(AllReduceAllocationFailure, OneIsAnErrorOnEveryRank) {
  expect_error_on_every_rank("near_lossless", false);
}

TEST(AllReduceAllocationFailure, AllFromOneOnAreAnErrorOnEveryRank) {
  expect_error_on_every_rank("none", true);
}

}  // namespace
}  // namespace gradwire
