// Lost ranks, lost messages, damaged messages: an error that names the cause, on every rank, in
// time; then the group is retired.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "gradwire/collective.h"
#include "support/all_reduce_model.h"
#include "support/fault_transport.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using testing::Bytes;
using testing::Fault;
using testing::RankOutcome;

constexpr int kWorld = 3;
constexpr std::size_t kValues = 60000;

// Communicators over small segments, `faults` on the sends of rank `faulty`.
std::vector<std::unique_ptr<Communicator>> make_faulty(int faulty,
                                                       const std::vector<Fault>& faults) {
  Communicator::Options options;
  options.segment_bytes = 16384;  // 5 segments per shard
  return testing::make_communicators(
      kWorld, options,
      [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
        if (rank != faulty) return inner;
        return std::make_unique<testing::FaultTransport>(std::move(inner), faults);
      });
}

std::vector<RankOutcome> run(const std::vector<std::unique_ptr<Communicator>>& communicators,
                             milliseconds deadline = milliseconds(20000)) {
  std::vector<Bytes> tensors(kWorld, Bytes(kValues * 4));
  CollectiveOptions options;
  options.deadline = deadline;
  return testing::all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, options);
}

// All ranks have raised, in time, and are not used again.
void expect_all_failed(const std::vector<std::unique_ptr<Communicator>>& communicators,
                       const std::vector<RankOutcome>& outcomes, milliseconds in_time) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    ASSERT_FALSE(outcomes[rank].status.ok());
    EXPECT_LT(outcomes[rank].elapsed, in_time);
    EXPECT_EQ(outcomes[rank].status.error().sequence, 1u);
    EXPECT_TRUE(communicators[rank]->retired());
    Bytes data(4);
    const Status next = communicators[rank]->all_reduce({data.data(), 1, DType::kFloat32}, {}, {});
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, ErrorCode::kRetired);
  }
}

TEST(BrokenPeer, KilledRankIsNamedByAll) {
  for (int killed = 0; killed < kWorld; ++killed) {
    for (const std::uint64_t message : {0, 1, 3, 6}) {
      SCOPED_TRACE("killed " + std::to_string(killed) + " at " + std::to_string(message));
      const int peer = (killed + 1) % kWorld;
      const auto communicators = make_faulty(killed, {{Fault::Kind::kKill, peer, message, 0, {}}});
      const auto outcomes = run(communicators);
      expect_all_failed(communicators, outcomes, milliseconds(2000));
      for (int rank = 0; rank < kWorld; ++rank) {
        const Error& error = outcomes[static_cast<std::size_t>(rank)].status.error();
        if (rank == killed) {
          EXPECT_EQ(error.code, ErrorCode::kRetired) << error.to_string();
        } else {
          EXPECT_EQ(error.code, ErrorCode::kPeerLost) << error.to_string();
          EXPECT_EQ(error.rank, killed) << error.to_string();
        }
      }
    }
  }
}

TEST(BrokenPeer, RankThatNeverComesIsNamedAtTheDeadline) {
  for (int missing = 0; missing < kWorld; ++missing) {
    const auto communicators = make_faulty(-1, {});
    testing::run_ranks(kWorld, [&](int rank) {
      if (rank == missing) return;
      Bytes data(4000);
      CollectiveOptions options;
      options.deadline = milliseconds(200);
      const Clock::time_point start = Clock::now();
      const Status status = communicators[static_cast<std::size_t>(rank)]->all_reduce(
          {data.data(), 1000, DType::kFloat32}, {}, options);
      const auto elapsed = Clock::now() - start;
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded) << status.error().to_string();
      EXPECT_EQ(status.error().rank, missing) << status.error().to_string();
      EXPECT_GE(elapsed, milliseconds(150));
      EXPECT_LT(elapsed, milliseconds(2200));
    });
  }
}

TEST(BrokenPeer, DroppedMessage) {
  // Of a stream of 10 messages: the second contribution, and the last.
  for (const std::uint64_t message : {1, 9}) {
    const auto communicators = make_faulty(0, {{Fault::Kind::kDrop, 1, message, 0, {}}});
    const auto outcomes = run(communicators, milliseconds(400));
    const Error& error = outcomes[1].status.error();
    ASSERT_FALSE(outcomes[1].status.ok());
    EXPECT_LT(outcomes[1].elapsed, milliseconds(2400));
    if (message == 9) {
      // Nothing comes behind the last one, and the others have all they need.
      EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded) << error.to_string();
      EXPECT_EQ(error.rank, 0);
    } else {
      // The next message is there instead.
      EXPECT_EQ(error.code, ErrorCode::kPeerMismatch) << error.to_string();
      EXPECT_EQ(error.field, "segment");
      expect_all_failed(communicators, outcomes, milliseconds(2400));
    }
  }
}

// A rank whose call has ended well hears of a failure in it at its next call.
TEST(BrokenPeer, FinishedRanksHearOfItAtTheNextCall) {
  const auto communicators = make_faulty(0, {{Fault::Kind::kDrop, 1, 9, 0, {}}});
  const auto outcomes = run(communicators, milliseconds(300));
  ASSERT_FALSE(outcomes[1].status.ok());
  ASSERT_TRUE(outcomes[2].status.ok()) << outcomes[2].status.error().to_string();
  ASSERT_TRUE(outcomes[0].status.ok()) << outcomes[0].status.error().to_string();
  testing::run_ranks(kWorld, [&](int rank) {
    if (rank == 1) return;
    const auto r = static_cast<std::size_t>(rank);
    Bytes data(4000);
    const Clock::time_point start = Clock::now();
    const Status next = communicators[r]->all_reduce({data.data(), 1000, DType::kFloat32}, {}, {});
    ASSERT_FALSE(next.ok());
    EXPECT_LT(Clock::now() - start, milliseconds(2000));
    EXPECT_TRUE(communicators[r]->retired());
    if (rank == 2) {
      EXPECT_EQ(next.error().code, ErrorCode::kDeadlineExceeded) << next.error().to_string();
      EXPECT_EQ(next.error().rank, 0);
      EXPECT_EQ(next.error().sequence, 1u) << "of the call that failed";
    }
  });
}

TEST(BrokenPeer, DamagedBytesAreNamed) {
  struct Damage {
    Fault::Kind kind;
    std::size_t amount;
    std::vector<ErrorCode> codes;
  };
  const std::vector<Damage> damages = {
      {Fault::Kind::kFlip, 0, {ErrorCode::kBadMagic}},
      {Fault::Kind::kFlip, 7, {ErrorCode::kHeaderChecksum}},
      {Fault::Kind::kFlip, 79, {ErrorCode::kTruncated}},  // the length's highest byte
      {Fault::Kind::kFlip, 124, {ErrorCode::kHeaderChecksum}},
      {Fault::Kind::kFlip, 130, {ErrorCode::kHeaderChecksum}},
      {Fault::Kind::kFlip, 5000, {ErrorCode::kBlockChecksum}},
      {Fault::Kind::kTruncate, 1, {}},
      {Fault::Kind::kTruncate, 100, {}},
      {Fault::Kind::kTruncate, 8000, {ErrorCode::kBlockChecksum}},
  };
  std::mt19937_64 random(1);
  for (const Damage& damage : damages) {
    for (const std::uint64_t message : {0, 2, 4}) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(damage.kind)) + " at " +
                   std::to_string(damage.amount) + " of message " + std::to_string(message));
      const auto communicators = make_faulty(2, {{damage.kind, 0, message, damage.amount, {}}});
      std::vector<Bytes> tensors;
      for (int rank = 0; rank < kWorld; ++rank) {
        tensors.push_back(testing::random_tensor(random, DType::kFloat32, kValues, false));
      }
      const auto outcomes =
          testing::all_reduce_ranks(communicators, tensors, DType::kFloat32, {}, {});
      expect_all_failed(communicators, outcomes, milliseconds(2000));
      const Error& seen = outcomes[0].status.error();
      EXPECT_EQ(seen.rank, 2) << seen.to_string();
      if (!damage.codes.empty()) {
        EXPECT_EQ(seen.code, damage.codes[0]) << seen.to_string();
      }
      for (const std::size_t rank : {1, 2}) {
        const Error& told = outcomes[rank].status.error();
        EXPECT_EQ(told.code, ErrorCode::kPeerError) << told.to_string();
        EXPECT_EQ(told.rank, 0) << told.to_string();
        EXPECT_NE(told.message.find(error_name(seen.code)), std::string::npos) << told.message;
      }
    }
  }
}

TEST(BrokenPeer, SlowMessagesAreNoError) {
  const auto communicators =
      make_faulty(1, {{Fault::Kind::kDelay, 0, 1, 100, {}}, {Fault::Kind::kDelay, 2, 5, 100, {}}});
  for (const RankOutcome& outcome : run(communicators)) {
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().to_string();
    EXPECT_GE(outcome.elapsed, milliseconds(50));
  }
}

TEST(BrokenPeer, RankThatLeftBeforeTheCall) {
  auto communicators = make_faulty(-1, {});
  communicators[1].reset();
  for (const std::size_t rank : {0, 2}) {
    Bytes data(4000);
    const Clock::time_point start = Clock::now();
    const Status status =
        communicators[rank]->all_reduce({data.data(), 1000, DType::kFloat32}, {}, {});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kPeerLost) << status.error().to_string();
    EXPECT_LT(Clock::now() - start, milliseconds(2000));
    if (rank == 0) {
      EXPECT_EQ(status.error().rank, 1);
    }
  }
}

}  // namespace
}  // namespace gradwire
