// Cuts the values of a list of parts into the pieces of one block after the other.
#ifndef GRADWIRE_CODEC_PIECE_CURSOR_H_
#define GRADWIRE_CODEC_PIECE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

// The first value that no block has taken yet.
struct PartCursor {
  std::size_t part = 0;
  std::uint64_t offset = 0;
};

// Takes the next `values` values: calls take(part, offset, count), count > 0, for each piece.
// `count_of(part)` is a part's number of values. Precondition: that many values are left.
template <typename CountOf, typename Take>
void take_pieces(PartCursor* cursor, std::uint64_t values, CountOf count_of, Take take) {
  while (values > 0) {
    const std::uint64_t count = std::min(values, count_of(cursor->part) - cursor->offset);
    if (count > 0) take(cursor->part, cursor->offset, count);
    values -= count;
    cursor->offset += count;
    if (cursor->offset == count_of(cursor->part)) {
      ++cursor->part;
      cursor->offset = 0;
    }
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_PIECE_CURSOR_H_
