// Values and groups of the pieces of a block (docs/format.md section 2).
#ifndef GRADWIRE_CODEC_PIECE_GROUPS_H_
#define GRADWIRE_CODEC_PIECE_GROUPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

// Values of a block.
template <typename Pieces>
std::uint64_t count_values(Pieces pieces) noexcept {
  std::uint64_t count = 0;
  for (const auto& piece : pieces) count += piece.count;
  return count;
}

// Calls visit(offset, count) for each group of a piece of `values` values; stops at false.
template <typename Visit>
bool for_each_group(std::uint64_t values, std::uint32_t group, Visit visit) {
  for (std::uint64_t offset = 0; offset < values; offset += group) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(group, values - offset));
    if (!visit(offset, count)) return false;
  }
  return true;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_PIECE_GROUPS_H_
