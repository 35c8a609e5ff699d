#include <cstring>
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

// Calls use(index, entry, bytes) for each block in order, once its hash is right.
template <typename Use>
Status for_each_block(const FrameView& frame, Use use) {
  std::span<const std::byte> rest = frame.blocks();
  for (std::uint32_t index = 0; index < frame.header().block_count; ++index) {
    const BlockEntry entry = frame.block(index);
    const std::span<const std::byte> bytes = rest.first(entry.length);
    rest = rest.subspan(entry.length);
    if (hash64(bytes) != entry.hash) {
      return block_error(index, make_error(ErrorCode::kBlockChecksum, "", "",
                                           "the checksum of its bytes is wrong"));
    }
    if (Status used = use(index, entry, bytes); !used.ok()) return block_error(index, used.error());
  }
  return {};
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

// Where the values of each block go, block after block.
class Destination {
 public:
  Destination(std::span<const TensorView> parts, std::size_t size, std::vector<PieceOut>* pieces)
      : parts_(parts), size_(size), pieces_(pieces) {}

  std::span<const PieceOut> next(std::uint64_t values) {
    pieces_->clear();
    const auto count_of = [this](std::size_t part) { return parts_[part].count; };
    take_pieces(
        &cursor_, values, count_of,
        [this](std::size_t part, std::uint64_t offset, std::uint64_t count) {
          pieces_->push_back({static_cast<std::byte*>(parts_[part].data) + offset * size_, count});
        });
    return *pieces_;
  }

 private:
  std::span<const TensorView> parts_;
  std::size_t size_;
  std::vector<PieceOut>* pieces_;
  PartCursor cursor_;
};

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
                 Workspace::Impl& scratch) {
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

}  // namespace

Status decode_frame(const FrameView& frame, std::span<const TensorView> parts,
                    Workspace& workspace) {
  const DType dtype = frame.header().dtype;
  GRADWIRE_RETURN_IF_ERROR(check_destination(frame, parts, dtype));
  const FpEnvironment environment;
  const FrameDecoder decoder(frame);
  Workspace::Impl& scratch = workspace.impl();
  Destination destination(parts, dtype_size(dtype), &scratch.pieces_out);
  return for_each_block(frame, [&](std::uint32_t index, const BlockEntry& entry,
                                   std::span<const std::byte> bytes) {
    return decoder.decode(entry, bytes, destination.next(frame.block_values(index)), scratch.coded);
  });
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
  const FpEnvironment environment;
  FrameDecoder decoder(frame);
  decoder.context.add = true;
  Workspace::Impl& scratch = workspace.impl();
  Destination destination(accumulators, dtype_size(*sum_dtype), &scratch.pieces_out);
  return for_each_block(frame, [&](std::uint32_t index, const BlockEntry& entry,
                                   std::span<const std::byte> bytes) {
    return add_block(decoder, entry, bytes, destination.next(frame.block_values(index)), scratch);
  });
}

Status verify_blocks(const FrameView& frame) {
  return for_each_block(
      frame, [](std::uint32_t, const BlockEntry&, std::span<const std::byte>) { return Status(); });
}

}  // namespace gradwire::internal
