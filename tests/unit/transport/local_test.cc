#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "gradwire/transport.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using testing::run_ranks;

constexpr std::size_t kSlot = 64;

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

Clock::time_point soon(int ms = 2000) { return Clock::now() + milliseconds(ms); }

TEST(LocalTransport, KnowsItsGroup) {
  const auto group = make_local_group(3, kSlot);
  const auto other = make_local_group(3, kSlot);
  ASSERT_EQ(group.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const Transport& transport = *group[static_cast<std::size_t>(rank)];
    EXPECT_EQ(transport.rank(), rank);
    EXPECT_EQ(transport.world(), 3);
    EXPECT_EQ(transport.slot_bytes(), kSlot);
    EXPECT_EQ(transport.group_id(), group[0]->group_id());
  }
  EXPECT_NE(group[0]->group_id(), other[0]->group_id());
  EXPECT_TRUE(make_local_group(0, kSlot).empty());
  EXPECT_TRUE(make_local_group(-1, kSlot).empty());
  EXPECT_TRUE(make_local_group(2, 0).empty());
}

TEST(LocalTransport, DeliversInOrderWhoeverComesFirst) {
  const auto group = make_local_group(2, kSlot);
  const auto first = filled(10, 1);
  const auto second = filled(kSlot, 2);
  auto slot_a = filled(kSlot, 9);
  auto slot_b = filled(kSlot, 9);
  const auto send_first = group[0]->send(1, first);  // before the slot
  ASSERT_TRUE(send_first.ok());
  const auto receive_a = group[1]->receive(0, slot_a);
  const auto receive_b = group[1]->receive(0, slot_b);
  const auto send_second = group[0]->send(1, second);  // behind the slot
  ASSERT_TRUE(receive_a.ok() && receive_b.ok() && send_second.ok());
  EXPECT_TRUE(group[1]->wait(*receive_a, soon()).ok());
  EXPECT_TRUE(group[1]->wait(*receive_b, soon()).ok());
  EXPECT_TRUE(group[0]->wait(*send_first, soon()).ok());
  EXPECT_TRUE(group[0]->wait(*send_second, soon()).ok());
  EXPECT_EQ(slot_a[9], std::byte{1});
  EXPECT_EQ(slot_a[10], std::byte{9}) << "a short message leaves the rest of the slot alone";
  EXPECT_EQ(slot_b, second);
}

TEST(LocalTransport, RefusesWhatDoesNotFit) {
  const auto group = make_local_group(2, kSlot);
  auto slot = filled(kSlot, 0);
  const auto code = [](const auto& result) {
    return result.ok() ? ErrorCode::kInternal : result.error().code;
  };
  EXPECT_EQ(code(group[0]->send(1, filled(kSlot + 1, 0))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(group[0]->send(1, {})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(group[0]->receive(1, std::span(slot).first(kSlot - 1))),
            ErrorCode::kInvalidArgument);
  for (const int peer : {-1, 0, 2}) {
    EXPECT_EQ(code(group[0]->send(peer, slot)), ErrorCode::kInvalidArgument) << peer;
    EXPECT_EQ(code(group[0]->receive(peer, slot)), ErrorCode::kInvalidArgument) << peer;
  }
}

TEST(LocalTransport, WaitEndsAtTheDeadline) {
  auto slot = filled(kSlot, 0);  // outlives the group, which has it until it is retired
  const auto group = make_local_group(2, kSlot);
  const auto receive = group[0]->receive(1, slot);
  const auto send = group[0]->send(1, slot);
  ASSERT_TRUE(receive.ok() && send.ok());
  for (const Request request : {*receive, *send}) {
    const Clock::time_point start = Clock::now();
    const Status status = group[0]->wait(request, start + milliseconds(30));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(status.error().rank, 1);
    EXPECT_GE(Clock::now() - start, milliseconds(30));
  }
}

TEST(LocalTransport, RetireWakesBothSides) {
  const auto group = make_local_group(3, kSlot);
  std::vector<ErrorCode> codes(3, ErrorCode::kInternal);
  run_ranks(3, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto slot = filled(kSlot, 0);
    if (rank == 2) {
      std::this_thread::sleep_for(milliseconds(30));
      group[2]->retire();
      group[2]->retire();
      const auto late = group[2]->receive(0, slot);
      codes[r] = late.ok() ? ErrorCode::kInternal : late.error().code;
      return;
    }
    const auto request = rank == 0 ? group[r]->receive(2, slot) : group[r]->send(2, slot);
    ASSERT_TRUE(request.ok());
    const Status status = group[r]->wait(*request, soon());
    codes[r] = status.ok() ? ErrorCode::kInternal : status.error().code;
    if (!status.ok()) {
      EXPECT_EQ(status.error().rank, 2);
    }
    group[r]->retire();
  });
  EXPECT_EQ(codes[0], ErrorCode::kPeerLost);
  EXPECT_EQ(codes[1], ErrorCode::kPeerLost);
  EXPECT_EQ(codes[2], ErrorCode::kRetired);
}

TEST(LocalTransport, RetireFromAnotherThreadEndsAWait) {
  const auto group = make_local_group(2, kSlot);
  auto slot = filled(kSlot, 0);
  const auto receive = group[0]->receive(1, slot);
  ASSERT_TRUE(receive.ok());
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    group[0]->retire();
  });
  const Status status = group[0]->wait(*receive, soon());
  other.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kRetired);
}

TEST(LocalTransport, WhatWasSentBeforeRetiringArrives) {
  const auto group = make_local_group(2, kSlot);
  {
    auto message = filled(5, 7);
    ASSERT_TRUE(group[0]->send(1, message).ok());
    group[0]->retire();
    message.assign(5, std::byte{0});  // the transport has its own copy by now
  }
  auto slot = filled(kSlot, 0);
  auto next_slot = filled(kSlot, 0);
  const auto receive = group[1]->receive(0, slot);
  const auto next = group[1]->receive(0, next_slot);
  ASSERT_TRUE(receive.ok() && next.ok());
  EXPECT_TRUE(group[1]->wait(*receive, soon()).ok());
  EXPECT_EQ(slot[4], std::byte{7});
  const Status status = group[1]->wait(*next, soon());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
}

TEST(LocalTransport, ManyMessagesBetweenManyRanks) {
  constexpr int kWorld = 5;
  constexpr int kMessages = 200;
  const auto group = make_local_group(kWorld, kSlot);
  std::vector<int> wrong(kWorld, 0);
  run_ranks(kWorld, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    Transport& transport = *group[r];
    std::vector<std::vector<std::byte>> messages;
    std::vector<Request> sends;
    for (int i = 0; i < kMessages; ++i) {
      messages.push_back(filled(1 + static_cast<std::size_t>(i) % kSlot, (rank * 31 + i) % 256));
    }
    for (int i = 0; i < kMessages; ++i) {
      for (int peer = 0; peer < kWorld; ++peer) {
        if (peer == rank) continue;
        sends.push_back(*transport.send(peer, messages[static_cast<std::size_t>(i)]));
      }
      for (int peer = 0; peer < kWorld; ++peer) {
        if (peer == rank) continue;
        auto slot = filled(kSlot, 0);
        const auto receive = transport.receive(peer, slot);
        if (!receive.ok() || !transport.wait(*receive, soon(20000)).ok() ||
            slot[static_cast<std::size_t>(i) % kSlot] !=
                static_cast<std::byte>((peer * 31 + i) % 256)) {
          ++wrong[r];
        }
      }
    }
    for (const Request send : sends) wrong[r] += !transport.wait(send, soon(20000)).ok();
  });
  EXPECT_EQ(wrong, std::vector<int>(kWorld, 0));
}

}  // namespace
}  // namespace gradwire
