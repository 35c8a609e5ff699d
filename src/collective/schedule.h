// Who owns what, and how it is cut: pure functions of the parts, the world and the sizes, so
// that every rank comes to the same plan without talking.
#ifndef GRADWIRE_COLLECTIVE_SCHEDULE_H_
#define GRADWIRE_COLLECTIVE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradwire/collective.h"

namespace gradwire::internal {

// Borders inside a parameter lie at multiples of this, the largest common group of the codecs,
// so that cutting a tensor does not cut its groups.
inline constexpr std::uint64_t kBorderValues = 256;
// Communicator::Options::segment_bytes: from kBorderValues of the largest type.
inline constexpr std::uint32_t kMinSegmentBytes = 256 * 8;
inline constexpr std::uint32_t kMaxSegmentBytes = 1u << 30;

// A run of values of one parameter; empty only as the single piece of an empty shard. One part of
// a frame.
struct SegmentPiece {
  std::uint64_t first_value = 0;  // index in the flat tensor
  std::uint64_t values = 0;
  std::uint32_t tensor = 0;
  std::uint64_t first_index = 0;  // index of the first value inside the parameter
};

// What one frame carries: pieces that lie one after the other, at least one.
struct Segment {
  std::uint64_t first_value = 0;
  std::uint64_t values = 0;
  std::size_t first_piece = 0;
  std::size_t piece_count = 0;
};

class ShardSchedule {
 public:
  // Cuts the tensor of `parts` for `world` ranks into segments of at most `max_values` values
  // (a multiple of kBorderValues, not 0) and `max_pieces` pieces. Cost: linear in parts and
  // segments; memory is reused. May throw std::bad_alloc.
  void build(std::span<const PartLayout> parts, int world, std::uint64_t max_values,
             std::size_t max_pieces);

  // At least one segment: an empty shard has exactly one, whose only piece is empty.
  std::span<const Segment> shard(int rank) const noexcept;
  std::span<const SegmentPiece> pieces(const Segment& segment) const noexcept;
  // Of the largest shard.
  std::uint32_t max_segment_count() const noexcept { return max_segment_count_; }

 private:
  void add_shard(std::span<const PartLayout> parts, std::uint64_t begin, std::uint64_t end);
  void open_segment(std::uint64_t first_value);

  std::uint64_t max_values_ = 0;
  std::size_t max_pieces_ = 0;
  std::vector<SegmentPiece> pieces_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> shard_begin_;  // world + 1 entries
  std::uint32_t max_segment_count_ = 0;
  // Where the next shard starts: part `part_` starts at value `part_begin_`.
  std::size_t part_ = 0;
  std::uint64_t part_begin_ = 0;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_SCHEDULE_H_
