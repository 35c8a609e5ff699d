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

// `dtype`: what the destination must have.
Status check_destination(const FrameView& frame, std::span<const TensorView> parts, DType dtype) {
  const FrameHeader& header = frame.header();
  if (parts.size() != header.part_count) {
    return shape_error("part_count", std::to_string(parts.size()),
                       std::to_string(header.part_count), "destination");
  }
  for (std::uint32_t index = 0; index < header.part_count; ++index) {
    const TensorView& part = parts[index];
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
  }
  return {};
}

void load_stored(std::span<const std::byte> bytes, std::size_t size,
                 std::span<const PieceOut> pieces) {
  const std::byte* from = bytes.data();  // the index says exactly the size of all values
  for (const PieceOut& piece : pieces) {
    const auto length = static_cast<std::size_t>(piece.count) * size;
    std::memcpy(piece.data, from, length);
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

// The blocks of one frame, on one thread or on several, which take block after block.
class BlockLoop {
 public:
  // `size`: of a destination value.
  BlockLoop(const FrameView& frame, const FrameDecoder& decoder, std::span<const TensorView> parts,
            std::size_t size)
      : frame_(frame), decoder_(decoder), parts_(parts), size_(size), rest_(frame.blocks()) {}

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
    if (next_ == frame_.header().block_count || !status_.ok()) return false;
    turn->index = next_++;  // before anything that can fail
    turn->entry = frame_.block(turn->index);
    turn->bytes = rest_.first(turn->entry.length);
    rest_ = rest_.subspan(turn->entry.length);
    scratch.pieces_out.clear();
    const auto count_of = [this](std::size_t part) { return parts_[part].count; };
    take_pieces(&cursor_, frame_.block_values(turn->index), count_of,
                [&](std::size_t part, std::uint64_t offset, std::uint64_t count) {
                  auto* const data = static_cast<std::byte*>(parts_[part].data);
                  scratch.pieces_out.push_back({data + offset * size_, count});
                });
    return true;
  }

  Status use(BlockScratch& scratch, const Turn& turn) const {
    GRADWIRE_RETURN_IF_ERROR(check_hash(turn.entry, turn.bytes));
    if (decoder_.context.add) {
      return add_block(decoder_, turn.entry, turn.bytes, scratch.pieces_out, scratch);
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
  const std::span<const TensorView> parts_;
  const std::size_t size_;

  std::mutex mutex_;  // guards all below
  std::span<const std::byte> rest_;
  std::uint32_t next_ = 0;
  PartCursor cursor_;
  std::uint32_t failed_ = 0;  // first block with an error
  Status status_;
};

Status run_blocks(const FrameView& frame, const FrameDecoder& decoder,
                  std::span<const TensorView> parts, DType dtype, Workspace& workspace) {
  const std::size_t size = dtype_size(dtype);
  Workspace::Impl& impl = workspace.impl();
  BlockLoop loop(frame, decoder, parts, size);
  auto work = [&](unsigned worker) noexcept { loop.work(impl.scratch_of(worker)); };
  const FrameHeader& header = frame.header();
  impl.run(impl.workers_for(header.block_count, header.value_count * size), work);
  return loop.finish();
}

}  // namespace

Status decode_frame(const FrameView& frame, std::span<const TensorView> parts,
                    Workspace& workspace) {
  const DType dtype = frame.header().dtype;
  GRADWIRE_RETURN_IF_ERROR(check_destination(frame, parts, dtype));
  const FrameDecoder decoder(frame);
  return run_blocks(frame, decoder, parts, dtype, workspace);
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
  return run_blocks(frame, decoder, accumulators, *sum_dtype, workspace);
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
