// What the pipeline hands to a block codec and gets back. A block codec turns the values of one
// block (docs/format.md section 2) into bytes and an index entry, and back.
#ifndef GRADWIRE_CODEC_BLOCK_CODEC_H_
#define GRADWIRE_CODEC_BLOCK_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "frame/block_index.h"
#include "gradwire/codec.h"

namespace gradwire::internal {

struct GroupScale;

// A run of values of one parameter inside one block: `count` > 0 values of the frame's dtype.
struct Piece {
  const std::byte* data = nullptr;
  std::uint64_t count = 0;
  std::uint32_t tensor = 0;       // noise only
  std::uint64_t first_index = 0;  // noise only
  // Scale of the whole parameter, or of the piece of one that the frame holds; only for codecs that
  // have one scale for it.
  const GroupScale* part_scale = nullptr;
};

// Where a run of decoded values goes.
struct PieceOut {
  std::byte* data = nullptr;
  std::uint64_t count = 0;
};

// What is the same for all blocks of a frame.
struct BlockContext {
  const CodecSpec* spec = nullptr;
  DType dtype = DType::kFloat32;
  std::uint8_t table = 0;       // built-in table, format.md 5.3
  std::uint64_t step = 0;       // noise only
  std::uint32_t sender = 0;     // noise only
  Phase phase = Phase::kWhole;  // noise only
  bool add = false;             // decoder of coded float32 blocks: adds values to the pieces
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_BLOCK_CODEC_H_
