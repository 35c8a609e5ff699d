#include "collective/schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/all_reduce_model.h"

namespace gradwire::internal {
namespace {

using Parts = std::vector<PartLayout>;

std::uint64_t total_of(const Parts& parts) {
  std::uint64_t total = 0;
  for (const PartLayout& part : parts) total += part.values;
  return total;
}

// At a part's border or at a multiple of 256 inside one.
bool is_border(const Parts& parts, std::uint64_t at) {
  std::uint64_t begin = 0;
  for (const PartLayout& part : parts) {
    if (at >= begin && at <= begin + part.values &&
        ((at - begin) % 256 == 0 || at == begin + part.values)) {
      return true;
    }
    begin += part.values;
  }
  return at == begin;
}

void check_schedule(const Parts& parts, int world, std::uint64_t max_values,
                    std::size_t max_pieces) {
  ShardSchedule schedule;
  schedule.build(parts, world, max_values, max_pieces);
  std::uint64_t at = 0;
  std::uint32_t most = 0;
  for (int rank = 0; rank < world; ++rank) {
    const ShardRange range = shard_range(parts, world, rank);
    ASSERT_EQ(range.begin, at);
    ASSERT_TRUE(is_border(parts, range.end)) << range.end;
    const std::span<const Segment> shard = schedule.shard(rank);
    ASSERT_GE(shard.size(), 1u);
    most = std::max(most, static_cast<std::uint32_t>(shard.size()));
    for (const Segment& segment : shard) {
      ASSERT_EQ(segment.first_value, at);
      ASSERT_LE(segment.values, max_values);
      ASSERT_GE(segment.piece_count, 1u);
      ASSERT_LE(segment.piece_count, max_pieces);
      ASSERT_TRUE(segment.values > 0 || range.begin == range.end);
      for (const SegmentPiece& piece : schedule.pieces(segment)) {
        ASSERT_EQ(piece.first_value, at);
        at += piece.values;
        if (piece.values == 0) continue;
        // The piece lies inside its parameter, whose number is its tensor here.
        std::uint64_t begin = 0;
        for (std::uint32_t p = 0; p < piece.tensor; ++p) begin += parts[p].values;
        const PartLayout& part = parts[piece.tensor];
        ASSERT_EQ(piece.first_index, part.first_index + piece.first_value - begin);
        ASSERT_LE(piece.first_value + piece.values, begin + part.values);
      }
      ASSERT_TRUE(is_border(parts, at)) << at;
    }
    ASSERT_EQ(at, range.end);
  }
  EXPECT_EQ(at, total_of(parts));
  EXPECT_EQ(schedule.max_segment_count(), most);
}

TEST(ShardRange, CutsNearTheMiddle) {
  EXPECT_EQ(shard_range(Parts{{1000, 0, 0}}, 2, 0).end, 512u);
  EXPECT_EQ(shard_range(Parts{{700, 0, 0}, {300, 1, 0}}, 2, 0).end, 512u);
  // A parameter's border is near enough.
  EXPECT_EQ(shard_range(Parts{{500, 0, 0}, {500, 1, 0}}, 2, 0).end, 500u);
  EXPECT_EQ(shard_range(Parts{{1000, 0, 0}}, 1, 0).end, 1000u);
}

TEST(ShardRange, SmallTensorsHaveEmptyShards) {
  const Parts parts{{1, 0, 0}};
  std::uint64_t owned = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const ShardRange range = shard_range(parts, 8, rank);
    owned += range.end - range.begin;
  }
  EXPECT_EQ(owned, 1u);
  EXPECT_EQ(shard_range({}, 4, 3).end, 0u);
}

TEST(ShardRange, RanksOutsideOwnNothing) {
  const Parts parts{{1000, 0, 0}};
  for (const auto& [world, rank] : {std::pair{0, 0}, {2, 2}, {2, -1}}) {
    const ShardRange range = shard_range(parts, world, rank);
    EXPECT_EQ(range.begin, range.end);
  }
}

TEST(ShardRange, HugeTensorsDoNotOverflow) {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  const Parts parts{{huge, 0, 0}};
  EXPECT_EQ(shard_range(parts, 8, 7).end, huge);
  EXPECT_EQ(shard_range(parts, 8, 3).end, huge / 2);
  EXPECT_EQ(shard_range(parts, 3, 0).end, huge / 3 / 256 * 256);
}

TEST(ShardSchedule, EmptyTensor) {
  check_schedule({}, 3, 256, 4);
  check_schedule({{0, 0, 0}}, 3, 256, 4);
}

TEST(ShardSchedule, SegmentsEndAtTheLimits) {
  ShardSchedule schedule;
  schedule.build(Parts{{1000, 0, 7}}, 1, 512, 4);
  ASSERT_EQ(schedule.shard(0).size(), 2u);
  EXPECT_EQ(schedule.shard(0)[0].values, 512u);
  EXPECT_EQ(schedule.pieces(schedule.shard(0)[1])[0].first_index, 519u);
  // Nine parameters of one value, four to a segment.
  const Parts many(9, PartLayout{1, 0, 0});
  schedule.build(many, 1, 512, 4);
  ASSERT_EQ(schedule.shard(0).size(), 3u);
  EXPECT_EQ(schedule.shard(0)[2].values, 1u);
}

TEST(ShardSchedule, RandomLayouts) {
  const std::uint64_t seed = testing::test_seed("ShardSchedule.RandomLayouts");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    Parts parts(random() % 12);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::uint64_t sizes[] = {0, 1, random() % 300, random() % 5000, 256 * (random() % 5)};
      parts[p] = {sizes[random() % 5], static_cast<std::uint32_t>(p), random() % 1000};
    }
    const int world = 1 + static_cast<int>(random() % 8);
    check_schedule(parts, world, 256 * (1 + random() % 6), 1 + random() % 5);
    if (HasFatalFailure()) FAIL() << "seed " << seed << " round " << round;
  }
}

}  // namespace
}  // namespace gradwire::internal
