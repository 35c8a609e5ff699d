#include "collective/schedule.h"

#include <algorithm>

namespace gradwire {
namespace {

// floor(total k / world) without overflow, for 0 <= k <= world.
std::uint64_t proportion(std::uint64_t total, std::uint64_t k, std::uint64_t world) {
  return total / world * k + total % world * k / world;
}

// The border nearest to `target` at a part's border or at a multiple of kBorderValues inside a
// part. Monotonic in target, as each part maps to itself.
std::uint64_t nearest_border(std::span<const PartLayout> parts, std::uint64_t target) {
  std::uint64_t begin = 0;
  for (const PartLayout& part : parts) {
    if (target - begin <= part.values) {
      const std::uint64_t offset = target - begin;
      const std::uint64_t down = offset - offset % internal::kBorderValues;
      const std::uint64_t up = std::min(down + internal::kBorderValues, part.values);
      return begin + (offset - down <= up - offset ? down : up);
    }
    begin += part.values;
  }
  return begin;
}

}  // namespace

ShardRange shard_range(std::span<const PartLayout> parts, int world, int rank) {
  if (world < 1 || rank < 0 || rank >= world) return {};
  std::uint64_t total = 0;
  for (const PartLayout& part : parts) total += part.values;
  const auto ranks = static_cast<std::uint64_t>(world);
  const auto border = [&](std::uint64_t k) {
    if (k == 0) return std::uint64_t{0};
    if (k == ranks) return total;
    return nearest_border(parts, proportion(total, k, ranks));
  };
  const auto k = static_cast<std::uint64_t>(rank);
  return {border(k), border(k + 1)};
}

namespace internal {

void ShardSchedule::build(std::span<const PartLayout> parts, int world, std::uint64_t max_values,
                          std::size_t max_pieces) {
  max_values_ = max_values;
  max_pieces_ = max_pieces;
  pieces_.clear();
  segments_.clear();
  shard_begin_.assign(1, 0);
  max_segment_count_ = 0;
  part_ = 0;
  part_begin_ = 0;
  for (int rank = 0; rank < world; ++rank) {
    const ShardRange range = shard_range(parts, world, rank);
    add_shard(parts, range.begin, range.end);
    const std::size_t count = segments_.size() - shard_begin_.back();
    max_segment_count_ = std::max(max_segment_count_, static_cast<std::uint32_t>(count));
    shard_begin_.push_back(segments_.size());
  }
}

void ShardSchedule::add_shard(std::span<const PartLayout> parts, std::uint64_t begin,
                              std::uint64_t end) {
  open_segment(begin);
  for (std::uint64_t at = begin; at < end;) {
    while (part_begin_ + parts[part_].values <= at) part_begin_ += parts[part_++].values;
    const PartLayout& part = parts[part_];
    const std::uint64_t rest = std::min(end, part_begin_ + part.values) - at;
    std::uint64_t room = max_values_ - segments_.back().values;
    if (segments_.back().piece_count == max_pieces_) room = 0;
    // A piece that ends inside its part ends at a border: `at` is at one, so its length is a
    // multiple. With less room than that the segment ends where the part before ended.
    const std::uint64_t values = rest <= room ? rest : room - room % kBorderValues;
    if (values == 0) {
      open_segment(at);
      continue;
    }
    const std::uint64_t offset = at - part_begin_;
    pieces_.push_back({at, values, part.tensor, part.first_index + offset});
    segments_.back().values += values;
    segments_.back().piece_count += 1;
    at += values;
  }
  if (begin == end) {
    pieces_.push_back({begin, 0, 0, 0});
    segments_.back().piece_count = 1;
  }
}

void ShardSchedule::open_segment(std::uint64_t first_value) {
  segments_.push_back({first_value, 0, pieces_.size(), 0});
}

std::span<const Segment> ShardSchedule::shard(int rank) const noexcept {
  const auto r = static_cast<std::size_t>(rank);
  return std::span(segments_).subspan(shard_begin_[r], shard_begin_[r + 1] - shard_begin_[r]);
}

std::span<const SegmentPiece> ShardSchedule::pieces(const Segment& segment) const noexcept {
  return std::span(pieces_).subspan(segment.first_piece, segment.piece_count);
}

}  // namespace internal
}  // namespace gradwire
