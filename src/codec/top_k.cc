// Codec `top_k` (docs/format.md 4.9): number | index list | values.
#include <algorithm>

#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "codec/index_list.h"
#include "codec/piece_groups.h"
#include "codec/piece_walk.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "quantize/top_magnitudes.h"

namespace gradwire::internal {
namespace {

std::size_t kept_bytes(const CodecSpec& spec) { return dtype_size(spec.cast_dtype); }

// To nearest even; only Inf becomes Inf.
std::uint16_t narrow(std::uint32_t bits) {
  constexpr std::uint16_t kInf = 0x7F80;
  const std::uint16_t rounded = bfloat16_from_float32_bits(bits);
  const bool overflows = (rounded & 0x7FFFu) == kInf && (bits & kFloat32Magnitude) != kFloat32Inf;
  return overflows ? static_cast<std::uint16_t>(rounded - 1) : rounded;
}

}  // namespace

bool encode_top_k_block(const BlockContext& context, std::span<const Piece> pieces, CodedScratch&,
                        std::span<std::byte> out, BlockEntry* entry) {
  const CodecSpec& spec = *context.spec;
  const std::uint64_t count = count_values(pieces);
  TopMagnitudes top = top_magnitudes(part_of(spec.step, count), [pieces](auto visit) {
    walk_values(pieces, [&](const Piece&, std::uint64_t, std::uint32_t bits) {
      visit(bits & kFloat32Magnitude);
      return true;
    });
  });
  const IndexListLayout layout = index_list_layout(count, top.kept);
  ByteWriter writer(out);
  std::span<std::byte> low;
  std::span<std::byte> high;
  std::span<std::byte> values;
  if (!writer.write(static_cast<std::uint32_t>(top.kept)) || !writer.take(layout.low_bytes, &low) ||
      !writer.take(layout.high_bytes, &high) ||
      !writer.take(kept_bytes(spec) * top.kept, &values)) {
    return false;
  }
  std::fill(high.begin(), high.end(), std::byte{0});
  IndexListWriter indices(layout, low, high);
  ByteWriter value_writer(values);
  std::uint32_t place = 0;
  const auto put = [&](const Piece&, std::uint64_t, std::uint32_t bits) {
    const std::uint32_t index = place++;
    if (!top.take(bits & kFloat32Magnitude)) return true;
    indices.put(index);
    return spec.cast_dtype == DType::kBFloat16 ? value_writer.write(narrow(bits))
                                               : value_writer.write(bits);
  };
  if (!walk_values(pieces, put)) return false;
  indices.finish();
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

Status decode_top_k_block(const BlockContext& context, const BlockEntry&,
                          std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                          CodedScratch&) {
  const CodecSpec& spec = *context.spec;
  const std::uint64_t count = count_values(pieces);
  ByteReader reader(bytes);
  std::uint32_t kept = 0;
  if (!reader.read(&kept) || kept > count) {
    return corrupt_block("does not start with the number of its kept values");
  }
  const IndexListLayout layout = index_list_layout(count, kept);
  std::span<const std::byte> low;
  std::span<const std::byte> high;
  std::span<const std::byte> values;
  if (!reader.take(layout.low_bytes, &low) || !reader.take(layout.high_bytes, &high) ||
      !reader.take(kept_bytes(spec) * kept, &values) || reader.remaining() != 0) {
    return corrupt_block("is not as long as its sections");
  }
  clear_values(pieces);
  IndexListReader indices(layout, count, low, high);
  PlaceCursor<PieceOut> places(pieces);
  for (std::uint32_t i = 0; i < kept; ++i) {
    std::uint32_t index = 0;
    if (!indices.next(&index)) return corrupt_block("an index is out of order");
    const std::byte* const from = values.data() + kept_bytes(spec) * i;
    store_le(places.at(index), spec.cast_dtype == DType::kBFloat16
                                   ? float32_bits_from_bfloat16(load_le<std::uint16_t>(from))
                                   : load_le<std::uint32_t>(from));
  }
  if (!indices.at_end()) return corrupt_block("has more indices than kept values");
  return {};
}

}  // namespace gradwire::internal
