// Values of the pieces of a block by their place in the block.
#ifndef GRADWIRE_CODEC_PIECE_WALK_H_
#define GRADWIRE_CODEC_PIECE_WALK_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "codec/block_codec.h"
#include "core/endian.h"
#include "core/float_bits.h"

namespace gradwire::internal {

// Calls visit(piece, offset, bits) for each float32 value in order; stops at false.
template <typename Visit>
bool walk_values(std::span<const Piece> pieces, Visit visit) {
  for (const Piece& piece : pieces) {
    for (std::uint64_t i = 0; i < piece.count; ++i) {
      if (!visit(piece, i, load_le<std::uint32_t>(piece.data + sizeof(float) * i))) return false;
    }
  }
  return true;
}

// Sets all values to +0.
inline void clear_values(std::span<const PieceOut> pieces) {
  for (const PieceOut& piece : pieces) {
    std::fill_n(piece.data, sizeof(float) * static_cast<std::size_t>(piece.count), std::byte{0});
  }
}

// Where the values of a block are, for increasing places. AnyPiece: Piece or PieceOut.
template <typename AnyPiece>
class PlaceCursor {
 public:
  explicit PlaceCursor(std::span<const AnyPiece> pieces) noexcept : pieces_(pieces) {}

  // Precondition: `place` is in the block and not before the one of the last call.
  auto* at(std::uint64_t place) noexcept {
    while (place - first_ >= pieces_[piece_].count) first_ += pieces_[piece_++].count;
    return pieces_[piece_].data + sizeof(float) * (place - first_);
  }
  // Of the last call: the piece, and the value's place in it.
  const AnyPiece& piece() const noexcept { return pieces_[piece_]; }
  std::uint64_t offset(std::uint64_t place) const noexcept { return place - first_; }

 private:
  const std::span<const AnyPiece> pieces_;
  std::size_t piece_ = 0;
  std::uint64_t first_ = 0;  // place of the piece's first value
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_PIECE_WALK_H_
