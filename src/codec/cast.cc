#include <string>

#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "quantize/cast.h"

namespace gradwire::internal {
namespace {

constexpr std::uint64_t kCastBytes = 2;  // of float16 and bfloat16

}  // namespace

bool encode_cast_block(const BlockContext& context, std::span<const Piece> pieces, CodedScratch&,
                       std::span<std::byte> out, BlockEntry* entry) {
  ByteWriter writer(out);
  for (const Piece& piece : pieces) {
    std::span<std::byte> target;
    if (!writer.take(kCastBytes * piece.count, &target)) return false;
    cast_narrow(context.dtype, context.spec->cast_dtype, piece.data,
                static_cast<std::size_t>(piece.count), target.data());
  }
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

Status decode_cast_block(const BlockContext& context, const BlockEntry&,
                         std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                         CodedScratch&) {
  ByteReader reader(bytes);
  for (const PieceOut& piece : pieces) {
    std::span<const std::byte> source;
    if (!reader.take(kCastBytes * piece.count, &source)) {
      return corrupt_block("cast block is shorter than two bytes per value");
    }
    cast_widen(context.spec->cast_dtype, context.dtype, source.data(),
               static_cast<std::size_t>(piece.count), piece.data);
  }
  if (reader.remaining() != 0) {
    return corrupt_block("cast block is longer than two bytes per value");
  }
  return {};
}

}  // namespace gradwire::internal
