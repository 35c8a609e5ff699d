// all_reduce against the documented formula, bit for bit, on every rank.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "gradwire/collective.h"
#include "support/all_reduce_model.h"
#include "support/codec_cases.h"
#include "support/random_collective.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using testing::Bytes;
using testing::random_collective;

void check(const testing::CollectiveCase& wanted, std::mt19937_64& random) {
  EXPECT_EQ(testing::collective_violation(wanted, random), "");
}

// Every codec with every type it takes, on 1 to 8 ranks.
TEST(AllReduceProperty, EveryCodecTypeAndWorld) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.EveryCodecTypeAndWorld");
  std::mt19937_64 random(seed);
  int world = 0;
  for (const auto& [codec, dtype] : test::floating_cases()) {
    for (const std::uint64_t count : {0, 1, 2, 255, 257, 1009, 20011}) {
      testing::CollectiveCase wanted;
      wanted.world = world++ % 8 + 1;
      wanted.dtype = dtype;
      wanted.parts = {{count, 3, 0}};
      wanted.options.codec = test::spec_of(codec);
      wanted.options.step = random();
      wanted.specials = count % 2 == 1;
      check(wanted, random);
      if (HasFailure()) return;
    }
  }
}

TEST(AllReduceProperty, LargePrimes) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.LargePrimes");
  std::mt19937_64 random(seed);
  const auto cases = test::floating_cases();
  const std::pair<std::uint64_t, int> sizes[] = {
      {100003, 1}, {100003, 8}, {499979, 5}, {999983, 2}, {999983, 3}};
  for (const auto& [count, world] : sizes) {
    const auto& [codec, dtype] = cases[random() % cases.size()];
    testing::CollectiveCase wanted;
    wanted.world = world;
    wanted.dtype = dtype;
    wanted.parts = {{count / 3, 0, 0}, {count - count / 3, 1, 0}};
    wanted.options.codec = test::spec_of(codec);
    check(wanted, random);
    if (HasFailure()) return;
  }
}

TEST(AllReduceProperty, RandomLayouts) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.RandomLayouts");
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int rounds = 0;
  for (; rounds < 2000 && std::chrono::steady_clock::now() < end; ++rounds) {
    check(random_collective(random), random);
    if (HasFailure()) return;
  }
  EXPECT_GT(rounds, 10);
}

// The same group used again and again with another tensor, codec and type each time.
TEST(AllReduceProperty, OneGroupManyCalls) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.OneGroupManyCalls");
  std::mt19937_64 random(seed);
  constexpr int kWorld = 3;
  Communicator::Options group;
  group.segment_bytes = 8192;
  const auto communicators = testing::make_communicators(kWorld, group);
  for (int call = 0; call < 100; ++call) {
    const testing::CollectiveCase wanted = random_collective(random);
    SCOPED_TRACE(wanted.text());
    std::vector<Bytes> tensors;
    for (int rank = 0; rank < kWorld; ++rank) {
      tensors.push_back(testing::random_tensor(random, wanted.dtype, wanted.values(), false));
    }
    const Bytes expected = testing::model_all_reduce(tensors, wanted.dtype, wanted.parts,
                                                     wanted.options, group.segment_bytes);
    const auto outcomes = testing::all_reduce_ranks(communicators, tensors, wanted.dtype,
                                                    wanted.parts, wanted.options);
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      ASSERT_TRUE(outcomes[rank].status.ok()) << outcomes[rank].status.error().to_string();
      ASSERT_EQ(testing::first_difference(tensors[rank], expected), "same");
    }
  }
}

}  // namespace
}  // namespace gradwire
