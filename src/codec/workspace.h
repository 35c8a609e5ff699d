// What a Workspace holds. Buffers only grow, so that steady use allocates nothing.
#ifndef GRADWIRE_CODEC_WORKSPACE_H_
#define GRADWIRE_CODEC_WORKSPACE_H_

#include <cstddef>
#include <vector>

#include "codec/block_codec.h"
#include "codec/coded_block.h"

namespace gradwire {

struct Workspace::Impl {
  std::vector<internal::Piece> pieces;         // of the block being encoded
  std::vector<internal::PieceOut> pieces_out;  // where the block being decoded ends up
  // decode_add(): one decoded block and its pieces.
  std::vector<std::byte> values;
  std::vector<internal::PieceOut> value_pieces;
  internal::CodedScratch coded;
};

}  // namespace gradwire

#endif  // GRADWIRE_CODEC_WORKSPACE_H_
