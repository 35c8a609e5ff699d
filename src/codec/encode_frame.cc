#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "codec/errors.h"
#include "codec/part_scales.h"
#include "codec/piece_cursor.h"
#include "codec/pipeline.h"
#include "codec/registry.h"
#include "codec/workspace.h"
#include "core/checksum.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"
#include "frame/frame_writer.h"
#include "frame/limits.h"

namespace gradwire::internal {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

Status check_context(const FrameContext& context, std::span<const Part> parts) {
  const auto bad = [](std::string_view field, std::uint64_t value, std::string_view expected) {
    std::string text = std::to_string(value);
    std::string message = std::string(field) + " is " + text + ", must be " + std::string(expected);
    return make_error(ErrorCode::kInvalidArgument, field, std::move(text), std::move(message));
  };
  if (context.op > Op::kBroadcast && context.op != Op::kError) {
    return bad("op", static_cast<unsigned>(context.op), "0 to 4 or 255");
  }
  if (context.op == Op::kError && !parts.empty()) {
    return bad("part_count", parts.size(), "0 in an error frame");
  }
  if (context.phase > Phase::kResult)
    return bad("phase", static_cast<unsigned>(context.phase), "0 to 2");
  if (context.reduction > Reduction::kAvg) {
    return bad("reduction", static_cast<unsigned>(context.reduction), "0 to 2");
  }
  if (context.schedule > Schedule::kDirect) {
    return bad("schedule", static_cast<unsigned>(context.schedule), "0 or 1");
  }
  if (context.segment >= context.segment_count) {
    return bad("segment", context.segment, "less than segment_count");
  }
  return {};
}

// Number of values, after the checks that make all later arithmetic safe.
Result<std::uint64_t> count_values(DType dtype, std::span<const Part> parts) {
  // Sums up to this times the largest value size stay far below 2^64.
  constexpr std::uint64_t kMostValues = std::uint64_t{1} << 56;
  std::uint64_t total = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const ConstTensorView& values = parts[index].values;
    const std::string place = "part " + std::to_string(index);
    if (values.dtype != dtype) {
      return make_error(ErrorCode::kInvalidArgument, "dtype", std::string(dtype_name(values.dtype)),
                        place + " is " + std::string(dtype_name(values.dtype)) + ", the frame is " +
                            std::string(dtype_name(dtype)));
    }
    if (values.data == nullptr && values.count > 0) {
      return make_error(ErrorCode::kInvalidArgument, "data", "null", place + " has no data");
    }
    if (values.count > kMostValues - total) {
      return make_error(ErrorCode::kInvalidArgument, "value_count", std::to_string(values.count),
                        place + ": more than 2^56 values in a frame");
    }
    total += values.count;
  }
  return total;
}

Result<FrameHeader> make_sized_header(const CodecSpec& spec, DType dtype,
                                      std::span<const Part> parts, const EncodeOptions& options) {
  GRADWIRE_RETURN_IF_ERROR(check_spec(spec));
  GRADWIRE_RETURN_IF_ERROR(check_dtype(spec, dtype));
  GRADWIRE_RETURN_IF_ERROR(check_context(options.context, parts));
  GRADWIRE_ASSIGN_OR_RETURN(const std::uint64_t values, count_values(dtype, parts));
  const std::uint64_t blocks = (values + spec.block_values - 1) / spec.block_values;
  for (const auto& [field, count] :
       {std::pair{"part_count", std::uint64_t{parts.size()}}, std::pair{"block_count", blocks},
        std::pair{"metadata_bytes", std::uint64_t{options.metadata.size()}}}) {
    if (count > kMost32) {
      return make_error(
          ErrorCode::kInvalidArgument, field, std::to_string(count),
          std::string(field) + " is " + std::to_string(count) + ", a frame holds at most 2^32 - 1");
    }
  }
  FrameHeader header = make_header(spec, dtype, options.context);
  header.part_count = static_cast<std::uint32_t>(parts.size());
  header.block_count = static_cast<std::uint32_t>(blocks);
  header.metadata_bytes = static_cast<std::uint32_t>(options.metadata.size());
  header.value_count = values;
  return header;
}

BlockContext make_block_context(const CodecSpec& spec, const FrameHeader& header) {
  return {.spec = &spec,
          .dtype = header.dtype,
          .table = header.table,
          .step = header.step,
          .sender = header.sender,
          .phase = header.phase};
}

// `scales`: of the parts, or null.
void take_pieces(std::span<const Part> parts, const GroupScale* scales, std::size_t size,
                 std::uint64_t values, PartCursor* cursor, std::vector<Piece>* pieces) {
  pieces->clear();
  const auto count_of = [parts](std::size_t part) { return parts[part].values.count; };
  take_pieces(cursor, values, count_of,
              [&](std::size_t index, std::uint64_t offset, std::uint64_t count) {
                const Part& part = parts[index];
                pieces->push_back({static_cast<const std::byte*>(part.values.data) + offset * size,
                                   count, part.tensor, part.first_index + offset,
                                   scales != nullptr ? scales + index : nullptr});
              });
}

void store_block(std::span<const Piece> pieces, std::size_t size, std::byte* out) {
  for (const Piece& piece : pieces) {
    const auto bytes = static_cast<std::size_t>(piece.count) * size;
    std::memcpy(out, piece.data, bytes);
    out += bytes;
  }
}

// Encodes the pieces into the start of `space`, which holds at least `raw` bytes, their size; fills
// the whole entry.
BlockEntry encode_block(const CodecEntry& codec, const BlockContext& context,
                        std::span<const Piece> pieces, std::size_t raw, std::span<std::byte> space,
                        CodedScratch& scratch) {
  BlockEntry entry;
  // A block that is not smaller than stored is stored.
  if (codec.encode_block != nullptr &&
      codec.encode_block(context, pieces, scratch, space.first(raw - 1), &entry)) {
    entry.kind = codec.kind;
  } else {
    store_block(pieces, dtype_size(context.dtype), space.data());
    entry = BlockEntry{};
    entry.length = static_cast<std::uint32_t>(raw);
  }
  entry.hash = hash64(space.first(entry.length));
  return entry;
}

void count_block(const BlockEntry& entry, EncodeStats* stats) {
  stats->blocks_stored += entry.kind == BlockKind::kStored;
  stats->blocks_coded += entry.kind == BlockKind::kCoded;
  stats->blocks_fixed += entry.kind == BlockKind::kFixed;
  stats->own_tables += (entry.flags & kBlockFlagOwnTable) != 0;
  stats->outliers += entry.outlier_count;
}

// The blocks of one frame, on one thread or on several, which take block after block. A thread
// whose block begins where all before it have ended encodes in place; others encode into memory of
// their own and copy the block, still in cache, when its place is known.
class FrameEncoder {
 public:
  FrameEncoder(const CodecSpec& spec, const FrameHeader& header, std::span<const Part> parts,
               const GroupScale* part_scales, FrameWriter* writer)
      : spec_(spec),
        codec_(*find_codec(spec.id)),
        context_(make_block_context(spec, header)),
        parts_(parts),
        part_scales_(part_scales),
        size_(dtype_size(header.dtype)),
        left_(header.value_count),
        writer_(*writer) {}

  // Of one worker; all return when the last block is placed or one has failed.
  void work(BlockScratch& scratch) noexcept {
    const FpEnvironment environment;
    try {
      Turn turn;
      while (take(scratch, &turn)) encode(scratch, turn);
    } catch (const std::bad_alloc&) {
      {
        const std::lock_guard lock(mutex_);
        failed_ = true;
      }
      placed_changed_.notify_all();
    }
  }

  // An allocation has failed: there is no frame.
  bool failed() const noexcept { return failed_; }
  const EncodeStats& stats() const noexcept { return stats_; }

 private:
  struct Turn {
    std::uint64_t index = 0;  // of the block
    std::uint64_t values = 0;
    bool in_place = false;
  };

  // The next block; false if there is none.
  bool take(BlockScratch& scratch, Turn* turn) {
    const std::lock_guard lock(mutex_);
    if (left_ == 0 || failed_) return false;
    turn->index = taken_++;
    turn->values = std::min<std::uint64_t>(left_, spec_.block_values);
    turn->in_place = turn->index == placed_;
    take_pieces(parts_, part_scales_, size_, turn->values, &cursor_, &scratch.pieces);
    left_ -= turn->values;
    return true;
  }

  void encode(BlockScratch& scratch, const Turn& turn) {
    const std::size_t raw = static_cast<std::size_t>(turn.values) * size_;
    if (!turn.in_place && scratch.block.size() < raw) scratch.block.resize(raw);
    const std::span<std::byte> space =
        turn.in_place ? writer_.free_space() : std::span<std::byte>(scratch.block);
    const BlockEntry entry =
        encode_block(codec_, context_, scratch.pieces, raw, space, scratch.coded);
    if (!turn.in_place) {
      if (!wait_for(turn.index)) return;
      std::memcpy(writer_.free_space().data(), space.data(), entry.length);
    }
    {
      const std::lock_guard lock(mutex_);
      writer_.block(entry);
      count_block(entry, &stats_);
      ++placed_;
    }
    placed_changed_.notify_all();
  }

  // Until it is this block's turn: then nobody else touches the writer. False after a failure.
  bool wait_for(std::uint64_t index) {
    std::unique_lock lock(mutex_);
    placed_changed_.wait(lock, [&] { return placed_ == index || failed_; });
    return !failed_;
  }

  const CodecSpec& spec_;
  const CodecEntry& codec_;
  const BlockContext context_;
  const std::span<const Part> parts_;
  const GroupScale* const part_scales_;  // one per part, for codecs that have it
  const std::size_t size_;

  std::mutex mutex_;  // guards all below
  std::condition_variable placed_changed_;
  std::uint64_t left_;  // values that no block has taken
  std::uint64_t taken_ = 0;
  std::uint64_t placed_ = 0;
  bool failed_ = false;
  PartCursor cursor_;
  FrameWriter& writer_;
  EncodeStats stats_;
};

// The scales of the parts; null for codecs whose scales are those of groups.
const GroupScale* find_part_scales(const CodecSpec& spec, DType dtype, std::span<const Part> parts,
                                   unsigned workers, Workspace::Impl& impl) {
  if (!has_option(spec.options, BoundOptions::kPerPart)) return nullptr;
  PartScaler scaler(spec, dtype, parts, &impl.part_scales);
  auto work = [&](unsigned) noexcept { scaler.work(); };
  for (int pass = 0; pass < scaler.passes(); ++pass) {
    scaler.begin_pass(pass);
    impl.run(workers, work);
  }
  scaler.finish();
  return impl.part_scales.scales.data();
}

}  // namespace

Result<std::size_t> encode_frame(const CodecSpec& spec, DType dtype, std::span<const Part> parts,
                                 const EncodeOptions& options, std::span<std::byte> out,
                                 Workspace& workspace, EncodeStats* stats) {
  GRADWIRE_ASSIGN_OR_RETURN(const FrameHeader header,
                            make_sized_header(spec, dtype, parts, options));
  const std::size_t size = dtype_size(dtype);
  const std::uint64_t needed = header.header_length() + header.value_count * size;
  if (out.size() < needed) {
    return make_error(ErrorCode::kBufferTooSmall, "out", std::to_string(out.size()),
                      "out has " + std::to_string(out.size()) + " bytes, max_encoded_size is " +
                          std::to_string(needed));
  }
  GRADWIRE_ASSIGN_OR_RETURN(FrameWriter writer, FrameWriter::begin(header, out));
  for (const Part& part : parts) writer.part(part.values.count);
  writer.metadata(options.metadata);

  Workspace::Impl& impl = workspace.impl();
  const unsigned workers = impl.workers_for(header.block_count, header.value_count * size);
  const GroupScale* const part_scales = find_part_scales(spec, dtype, parts, workers, impl);
  FrameEncoder encoder(spec, header, parts, part_scales, &writer);
  auto work = [&](unsigned worker) noexcept { encoder.work(impl.scratch_of(worker)); };
  impl.run(workers, work);
  if (encoder.failed()) throw std::bad_alloc();
  if (stats != nullptr) *stats = encoder.stats();
  return writer.finish();
}

}  // namespace gradwire::internal
