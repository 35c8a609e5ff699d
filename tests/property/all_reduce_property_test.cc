// all_reduce against the documented formula, bit for bit, on every rank.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gradwire/collective.h"
#include "support/all_reduce_model.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using testing::Bytes;

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

// All codecs of the registry in all their examples, with the types that each takes.
std::vector<std::pair<CodecSpec, DType>> all_combinations() {
  std::vector<std::pair<CodecSpec, DType>> all;
  for (const CodecDescription& codec : codecs()) {
    for (const std::string_view example : codec.examples) {
      const CodecSpec spec = CodecSpec::parse(example).value();
      for (const DType dtype : kDTypes) {
        if (check_dtype(spec, dtype).ok()) all.emplace_back(spec, dtype);
      }
    }
  }
  return all;
}

struct Case {
  int world = 1;
  DType dtype = DType::kFloat32;
  std::vector<PartLayout> parts;
  CollectiveOptions options;
  Communicator::Options group;
  bool specials = false;

  std::string text() const {
    std::string text = "world " + std::to_string(world) + ", " + std::string(dtype_name(dtype)) +
                       ", " + options.codec.to_string() + ", segments of " +
                       std::to_string(group.segment_bytes) + ", parts";
    for (const PartLayout& part : parts) text.append(" ").append(std::to_string(part.values));
    return text;
  }
};

std::size_t values_of(const std::vector<PartLayout>& parts) {
  std::size_t count = 0;
  for (const PartLayout& part : parts) count += part.values;
  return count;
}

void check(const Case& wanted, std::mt19937_64& random) {
  SCOPED_TRACE(wanted.text());
  std::vector<Bytes> tensors;
  for (int rank = 0; rank < wanted.world; ++rank) {
    tensors.push_back(
        testing::random_tensor(random, wanted.dtype, values_of(wanted.parts), wanted.specials));
  }
  const Bytes expected = testing::model_all_reduce(tensors, wanted.dtype, wanted.parts,
                                                   wanted.options, wanted.group.segment_bytes);
  const auto communicators = testing::make_communicators(wanted.world, wanted.group);
  const auto outcomes =
      testing::all_reduce_ranks(communicators, tensors, wanted.dtype, wanted.parts, wanted.options);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Status& status = outcomes[rank].status;
    ASSERT_TRUE(status.ok()) << "rank " << rank << ": " << status.error().to_string();
    ASSERT_EQ(testing::first_difference(tensors[rank], expected), "same") << "rank " << rank;
  }
}

// Every codec with every type it takes, on 1 to 8 ranks.
TEST(AllReduceProperty, EveryCodecTypeAndWorld) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.EveryCodecTypeAndWorld");
  std::mt19937_64 random(seed);
  int world = 0;
  for (const auto& [codec, dtype] : all_combinations()) {
    for (const std::uint64_t count : {0, 1, 2, 255, 257, 1009, 20011}) {
      Case wanted;
      wanted.world = world++ % 8 + 1;
      wanted.dtype = dtype;
      wanted.parts = {{count, 3, 0}};
      wanted.options.codec = codec;
      wanted.options.step = random();
      wanted.specials = count % 2 == 1;
      check(wanted, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AllReduceProperty, LargePrimes) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.LargePrimes");
  std::mt19937_64 random(seed);
  const auto combinations = all_combinations();
  const std::pair<std::uint64_t, int> sizes[] = {
      {100003, 1}, {100003, 8}, {499979, 5}, {999983, 2}, {999983, 3}};
  for (const auto& [count, world] : sizes) {
    const auto& [codec, dtype] = combinations[random() % combinations.size()];
    Case wanted;
    wanted.world = world;
    wanted.dtype = dtype;
    wanted.parts = {{count / 3, 0, 0}, {count - count / 3, 1, 0}};
    wanted.options.codec = codec;
    check(wanted, random);
    if (HasFatalFailure()) return;
  }
}

Case random_case(std::mt19937_64& random) {
  static const auto combinations = all_combinations();
  Case wanted;
  wanted.world = 1 + static_cast<int>(random() % 8);
  std::tie(wanted.options.codec, wanted.dtype) = combinations[random() % combinations.size()];
  wanted.options.reduction = random() % 2 == 0 ? Reduction::kSum : Reduction::kAvg;
  wanted.options.step = random() % 1000;
  wanted.options.measure_error = random() % 2 == 0;
  wanted.specials = random() % 2 == 0;
  // Small segments, so that pipelines are deep and cuts frequent.
  wanted.group.segment_bytes = 2048 + static_cast<std::uint32_t>(random() % 30000);
  const std::size_t part_count = random() % 40;
  for (std::size_t p = 0; p < part_count; ++p) {
    const std::uint64_t sizes[] = {0, 1, random() % 600, random() % 3000, 256 * (random() % 8)};
    wanted.parts.push_back({sizes[random() % 5], static_cast<std::uint32_t>(random() % 100),
                            random() % 4 == 0 ? random() % 1000 : 0});
  }
  if (wanted.parts.empty()) wanted.parts.push_back({random() % 5000, 0, 0});
  return wanted;
}

TEST(AllReduceProperty, RandomLayouts) {
  const std::uint64_t seed = testing::test_seed("AllReduceProperty.RandomLayouts");
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int rounds = 0;
  for (; rounds < 2000 && std::chrono::steady_clock::now() < end; ++rounds) {
    check(random_case(random), random);
    if (HasFatalFailure()) return;
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
    Case wanted = random_case(random);
    SCOPED_TRACE(wanted.text());
    std::vector<Bytes> tensors;
    for (int rank = 0; rank < kWorld; ++rank) {
      tensors.push_back(
          testing::random_tensor(random, wanted.dtype, values_of(wanted.parts), false));
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
