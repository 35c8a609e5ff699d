#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "codec/accumulate.h"
#include "codec/errors.h"
#include "codec/piece_cursor.h"
#include "codec/pipeline.h"
#include "codec/registry.h"
#include "codec/workspace.h"
#include "core/checksum.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"
#include "frame/limits.h"

namespace gradwire::internal {
namespace {

Error block_error(std::uint32_t index, Error error) {
  error.field = "block";
  error.theirs = std::to_string(index);
  error.message = "block " + std::to_string(index) + ": " + error.message;
  return error;
}

Status check_hash(const BlockEntry& entry, std::span<const std::byte> bytes) {
  if (hash64(bytes) == entry.hash) return {};
  return make_error(ErrorCode::kBlockChecksum, "", "", "the checksum of its bytes is wrong");
}

Error shape_error(std::string_view field, std::string mine, std::string theirs,
                  std::string_view place) {
  std::string message = std::string(place) + ": " + std::string(field) + " is " + mine +
                        ", in the frame it is " + theirs;
  Error error = make_error(ErrorCode::kShapeMismatch, field, std::move(mine), std::move(message));
  error.theirs = std::move(theirs);
  return error;
}

// Whether `part` fits part `index` of the frame. `dtype`: what it must have.
Status check_part(const FrameView& frame, std::uint32_t index, const TensorView& part,
                  DType dtype) {
  const std::uint64_t values = frame.part_values(index);
  if (part.dtype != dtype || part.count != values) {
    const std::string place = "part " + std::to_string(index);
    if (part.count == values) {
      return shape_error("dtype", std::string(dtype_name(part.dtype)),
                         std::string(dtype_name(dtype)), place);
    }
    return shape_error("value_count", std::to_string(part.count), std::to_string(values), place);
  }
  if (part.data == nullptr && part.count > 0) {
    return make_error(ErrorCode::kInvalidArgument, "data", "null",
                      "part " + std::to_string(index) + " has no data");
  }
  return {};
}

Status check_destination(const FrameView& frame, std::span<const TensorView> parts, DType dtype) {
  const FrameHeader& header = frame.header();
  if (parts.size() != header.part_count) {
    return shape_error("part_count", std::to_string(parts.size()),
                       std::to_string(header.part_count), "destination");
  }
  for (std::uint32_t index = 0; index < header.part_count; ++index) {
    GRADWIRE_RETURN_IF_ERROR(check_part(frame, index, parts[index], dtype));
  }
  return {};
}

// Pieces without a place are skipped.
void load_stored(std::span<const std::byte> bytes, std::size_t size,
                 std::span<const PieceOut> pieces) {
  const std::byte* from = bytes.data();  // the index says exactly the size of all values
  for (const PieceOut& piece : pieces) {
    const auto length = static_cast<std::size_t>(piece.count) * size;
    if (piece.data != nullptr) std::memcpy(piece.data, from, length);
    from += length;
  }
}

// What the blocks of one frame are decoded with.
struct FrameDecoder {
  explicit FrameDecoder(const FrameView& frame)
      : codec(*find_codec(frame.header().codec)), spec(header_spec(frame.header())) {
    const FrameHeader& header = frame.header();
    context = {.spec = &spec,
               .dtype = header.dtype,
               .table = header.table,
               .step = header.step,
               .sender = header.sender,
               .phase = header.phase};
  }
  FrameDecoder(const FrameDecoder&) = delete;

  // True for blocks whose codec adds values to accumulators by itself: call decode() for these.
  bool adds(const BlockEntry& entry) const {
    return context.add && entry.kind == BlockKind::kCoded && context.dtype == DType::kFloat32;
  }

  Status decode(const BlockEntry& entry, std::span<const std::byte> bytes,
                std::span<const PieceOut> pieces, CodedScratch& scratch) const {
    if (entry.kind != BlockKind::kStored) {
      return codec.decode_block(context, entry, bytes, pieces, scratch);
    }
    load_stored(bytes, dtype_size(context.dtype), pieces);
    return {};
  }

  const CodecEntry& codec;
  const CodecSpec spec;
  BlockContext context;  // points to spec
};

// Adds one block to the accumulators `sums`, piece by piece, by way of scratch.values where the
// codec does not add.
Status add_block(const FrameDecoder& decoder, const BlockEntry& entry,
                 std::span<const std::byte> bytes, std::span<const PieceOut> sums,
                 BlockScratch& scratch) {
  if (decoder.adds(entry)) return decoder.decode(entry, bytes, sums, scratch.coded);
  const DType dtype = decoder.context.dtype;
  const std::size_t size = dtype_size(dtype);
  const std::byte* values = bytes.data();  // a stored block is added as it lies
  if (entry.kind != BlockKind::kStored) {
    std::uint64_t count = 0;
    for (const PieceOut& sum : sums) count += sum.count;
    const std::size_t needed = static_cast<std::size_t>(count) * size;
    if (scratch.values.size() < needed) scratch.values.resize(needed);
    scratch.value_pieces.clear();
    std::byte* place = scratch.values.data();
    for (const PieceOut& sum : sums) {
      scratch.value_pieces.push_back({place, sum.count});
      place += static_cast<std::size_t>(sum.count) * size;
    }
    GRADWIRE_RETURN_IF_ERROR(decoder.decode(entry, bytes, scratch.value_pieces, scratch.coded));
    values = scratch.values.data();
  }
  for (const PieceOut& sum : sums) {
    accumulate(dtype, values, static_cast<std::size_t>(sum.count), sum.data);
    values += static_cast<std::size_t>(sum.count) * size;
  }
  return {};
}

// Where decoded values go: all parts, or one of them alone.
class Destination {
 public:
  explicit Destination(std::span<const TensorView> parts) : parts_(parts) {}
  Destination(const TensorView* part, std::uint32_t index)
      : parts_(part, 1), first_(index), partial_(true) {}

  // Null for a part that nobody asked for.
  std::byte* data_of(std::size_t part) const noexcept {
    if (part < first_ || part - first_ >= parts_.size()) return nullptr;
    return static_cast<std::byte*>(parts_[part - first_].data);
  }
  // Whether there are parts that nobody asked for.
  bool is_partial() const noexcept { return partial_; }

 private:
  std::span<const TensorView> parts_;
  std::size_t first_ = 0;  // part of parts_[0]
  bool partial_ = false;
};

// A run of blocks.
struct BlockRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  PartCursor cursor;                 // first value of the first one
  std::span<const std::byte> bytes;  // from the first one on
};

// The blocks that hold values of the part; none for a part without values.
BlockRange blocks_of_part(const FrameView& frame, std::uint32_t index) {
  BlockRange range;
  range.bytes = frame.blocks();
  const std::uint64_t count = frame.part_values(index);
  if (count == 0) return range;
  const std::uint64_t size = frame.header().block_values;
  std::uint64_t begin = 0;
  for (std::uint32_t part = 0; part < index; ++part) begin += frame.part_values(part);
  range.first = static_cast<std::uint32_t>(begin / size);
  range.end = static_cast<std::uint32_t>((begin + count - 1) / size + 1);
  std::size_t skipped = 0;
  for (std::uint32_t block = 0; block < range.first; ++block) skipped += frame.block(block).length;
  range.bytes = range.bytes.subspan(skipped);
  range.cursor.offset = range.first * size;
  while (range.cursor.offset >= frame.part_values(static_cast<std::uint32_t>(range.cursor.part))) {
    range.cursor.offset -= frame.part_values(static_cast<std::uint32_t>(range.cursor.part));
    ++range.cursor.part;
  }
  return range;
}

// Places in scratch.values for the pieces that have none.
void place_pieces(std::size_t size, BlockScratch& scratch) {
  std::uint64_t count = 0;
  for (const PieceOut& piece : scratch.pieces_out) count += piece.data == nullptr ? piece.count : 0;
  const std::size_t needed = static_cast<std::size_t>(count) * size;
  if (scratch.values.size() < needed) scratch.values.resize(needed);
  std::byte* place = scratch.values.data();
  for (PieceOut& piece : scratch.pieces_out) {
    if (piece.data != nullptr) continue;
    piece.data = place;
    place += static_cast<std::size_t>(piece.count) * size;
  }
}

// Blocks of one frame, on one thread or on several, which take block after block.
class BlockLoop {
 public:
  // `size`: of a destination value.
  BlockLoop(const FrameView& frame, const FrameDecoder& decoder, const Destination& destination,
            std::size_t size, const BlockRange& range)
      : frame_(frame),
        decoder_(decoder),
        destination_(destination),
        size_(size),
        end_(range.end),
        rest_(range.bytes),
        next_(range.first),
        cursor_(range.cursor) {}

  // Of one worker. Blocks are taken in order, and one that was taken is finished: so the first bad
  // block of the frame is found whatever the threads do.
  void work(BlockScratch& scratch) noexcept {
    const FpEnvironment environment;
    Turn turn;
    Status status = without_bad_alloc([&]() -> Status {
      while (take(scratch, &turn)) GRADWIRE_RETURN_IF_ERROR(use(scratch, turn));
      return {};
    });
    if (!status.ok()) fail(turn.index, std::move(status));
  }

  Status finish() {
    if (status_.ok() || status_.error().code == ErrorCode::kOutOfMemory) return status_;
    return block_error(failed_, status_.error());
  }

 private:
  struct Turn {
    std::uint32_t index = 0;  // of the block
    BlockEntry entry;
    std::span<const std::byte> bytes;
  };

  bool take(BlockScratch& scratch, Turn* turn) {
    const std::lock_guard lock(mutex_);
    if (next_ == end_ || !status_.ok()) return false;
    turn->index = next_++;  // before anything that can fail
    turn->entry = frame_.block(turn->index);
    turn->bytes = rest_.first(turn->entry.length);
    rest_ = rest_.subspan(turn->entry.length);
    scratch.pieces_out.clear();
    const auto count_of = [this](std::size_t part) {
      return frame_.part_values(static_cast<std::uint32_t>(part));
    };
    take_pieces(
        &cursor_, frame_.block_values(turn->index), count_of,
        [&](std::size_t part, std::uint64_t offset, std::uint64_t count) {
          std::byte* const data = destination_.data_of(part);
          scratch.pieces_out.push_back({data != nullptr ? data + offset * size_ : nullptr, count});
        });
    return true;
  }

  Status use(BlockScratch& scratch, const Turn& turn) const {
    GRADWIRE_RETURN_IF_ERROR(check_hash(turn.entry, turn.bytes));
    if (decoder_.context.add) {
      return add_block(decoder_, turn.entry, turn.bytes, scratch.pieces_out, scratch);
    }
    if (destination_.is_partial() && turn.entry.kind != BlockKind::kStored) {
      place_pieces(size_, scratch);
    }
    return decoder_.decode(turn.entry, turn.bytes, scratch.pieces_out, scratch.coded);
  }

  void fail(std::uint32_t index, Status status) noexcept {
    const std::lock_guard lock(mutex_);
    if (!status_.ok() && failed_ < index) return;
    failed_ = index;
    status_ = std::move(status);
  }

  const FrameView& frame_;
  const FrameDecoder& decoder_;
  const Destination& destination_;
  const std::size_t size_;
  const std::uint32_t end_;

  std::mutex mutex_;  // guards all below
  std::span<const std::byte> rest_;
  std::uint32_t next_ = 0;
  PartCursor cursor_;
  std::uint32_t failed_ = 0;  // first block with an error
  Status status_;
};

Status run_blocks(const FrameView& frame, const FrameDecoder& decoder,
                  const Destination& destination, DType dtype, const BlockRange& range,
                  Workspace& workspace) {
  const std::size_t size = dtype_size(dtype);
  Workspace::Impl& impl = workspace.impl();
  BlockLoop loop(frame, decoder, destination, size, range);
  auto work = [&](unsigned worker) noexcept { loop.work(impl.scratch_of(worker)); };
  const std::uint64_t blocks = range.end - range.first;
  const std::uint64_t most_bytes = blocks * frame.header().block_values * size;
  impl.run(impl.workers_for(blocks, most_bytes), work);
  return loop.finish();
}

BlockRange all_blocks(const FrameView& frame) {
  return {.first = 0, .end = frame.header().block_count, .cursor = {}, .bytes = frame.blocks()};
}

}  // namespace

Status decode_frame(const FrameView& frame, std::span<const TensorView> parts,
                    Workspace& workspace) {
  const DType dtype = frame.header().dtype;
  GRADWIRE_RETURN_IF_ERROR(check_destination(frame, parts, dtype));
  const FrameDecoder decoder(frame);
  return run_blocks(frame, decoder, Destination(parts), dtype, all_blocks(frame), workspace);
}

Status decode_part_frame(const FrameView& frame, std::uint32_t index, const TensorView& part,
                         Workspace& workspace) {
  const FrameHeader& header = frame.header();
  if (index >= header.part_count) {
    const std::string text = std::to_string(index);
    return make_error(
        ErrorCode::kOutOfRange, "index", text,
        "index is " + text + ", the frame has " + std::to_string(header.part_count) + " parts");
  }
  GRADWIRE_RETURN_IF_ERROR(check_part(frame, index, part, header.dtype));
  const FrameDecoder decoder(frame);
  return run_blocks(frame, decoder, Destination(&part, index), header.dtype,
                    blocks_of_part(frame, index), workspace);
}

Status decode_add_frame(const FrameView& frame, std::span<const TensorView> accumulators,
                        Workspace& workspace) {
  const DType dtype = frame.header().dtype;
  const std::optional<DType> sum_dtype = accumulator_dtype(dtype);
  if (!sum_dtype) {
    const std::string name(dtype_name(dtype));
    return make_error(ErrorCode::kUnsupportedDType, "dtype", name, name + " values are not added");
  }
  GRADWIRE_RETURN_IF_ERROR(check_destination(frame, accumulators, *sum_dtype));
  FrameDecoder decoder(frame);
  decoder.context.add = true;
  return run_blocks(frame, decoder, Destination(accumulators), *sum_dtype, all_blocks(frame),
                    workspace);
}

Status verify_blocks(const FrameView& frame) {
  std::span<const std::byte> rest = frame.blocks();
  for (std::uint32_t index = 0; index < frame.header().block_count; ++index) {
    const BlockEntry entry = frame.block(index);
    const Status checked = check_hash(entry, rest.first(entry.length));
    if (!checked.ok()) return block_error(index, checked.error());
    rest = rest.subspan(entry.length);
  }
  return {};
}

}  // namespace gradwire::internal
