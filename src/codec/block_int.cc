// Codec `block` (docs/format.md 4.2): scales | integers | raw groups.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "codec/piece_groups.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "quantize/block_int.h"

namespace gradwire::internal {
namespace {

constexpr std::size_t kScaleBytes = 2;

}  // namespace

bool encode_int_block(const BlockContext& context, std::span<const Piece> pieces, CodedScratch&,
                      std::span<std::byte> out, BlockEntry* entry) {
  const CodecSpec& spec = *context.spec;
  const std::size_t value_bytes = dtype_size(context.dtype);
  ByteWriter writer(out);
  std::span<std::byte> scales;
  std::span<std::byte> packed;
  if (!writer.take(kScaleBytes * count_groups(pieces, spec.group), &scales) ||
      !writer.take(bit_array_bytes(count_values(pieces), spec.bits), &packed)) {
    return false;
  }
  ByteWriter scale_writer(scales);
  BitPacker packer(packed.data(), spec.bits);
  // A batch of groups at a time.
  const std::uint32_t batch = kMostBlockGroup / spec.group * spec.group;
  std::array<std::int8_t, kMostBlockGroup> integers;
  std::array<std::uint16_t, kMostBlockGroup / 8> batch_scales;
  std::uint32_t raw_groups = 0;
  for (const Piece& piece : pieces) {
    BlockRounding rounding{spec.rounding == Rounding::kStochastic,
                           noise_key(spec.seed, context.step, piece.tensor, context.sender,
                                     static_cast<std::uint8_t>(context.phase)),
                           piece.first_index};
    const auto encode_batch = [&](std::uint64_t offset, std::size_t count) {
      const std::byte* values = piece.data + value_bytes * offset;
      rounding.index = piece.first_index + offset;
      block_int_encode_simd(context.dtype, values, count, spec.group, spec.bits, rounding,
                            batch_scales.data(), integers.data());
      packer.append(integers.data(), count);
      return for_each_group(count, spec.group, [&](std::uint64_t first, std::size_t length) {
        const std::uint16_t scale = batch_scales[static_cast<std::size_t>(first / spec.group)];
        if (!scale_writer.write(scale)) return false;
        if (scale != kRawGroupScale) return true;
        ++raw_groups;
        return writer.write_bytes({values + value_bytes * first, value_bytes * length});
      });
    };
    if (!for_each_group(piece.count, batch, encode_batch)) return false;
  }
  packer.finish();
  entry->length = static_cast<std::uint32_t>(writer.position());
  entry->outlier_count = raw_groups;
  return true;
}

namespace {

// Reads the sections of one block.
class IntBlockDecoder {
 public:
  IntBlockDecoder(const BlockContext& context, std::span<const std::byte> bytes)
      : dtype_(context.dtype),
        value_bytes_(dtype_size(context.dtype)),
        bits_(context.spec->bits),
        group_(context.spec->group),
        reader_(bytes) {}

  Status decode(std::span<const PieceOut> pieces, std::uint32_t raw_groups) {
    if (!reader_.take(kScaleBytes * count_groups(pieces, group_), &scales_) ||
        !reader_.take(bit_array_bytes(count_values(pieces), bits_), &packed_)) {
      return corrupt_block("shorter than its scales and integers");
    }
    for (const PieceOut& piece : pieces) {
      const auto decode_one = [&](std::uint64_t offset, std::size_t count) {
        return decode_group(count, piece.data + value_bytes_ * offset);
      };
      if (!for_each_group(piece.count, group_, decode_one)) return corrupt_block(reason_);
    }
    if (raw_groups_ != raw_groups) {
      return corrupt_block("has " + std::to_string(raw_groups_) + " raw groups, the index says " +
                           std::to_string(raw_groups));
    }
    if (reader_.remaining() != 0) return corrupt_block("longer than its sections");
    return {};
  }

 private:
  bool decode_group(std::size_t count, std::byte* values) {
    const auto scale = load_le<std::uint16_t>(scales_.data() + kScaleBytes * next_group_++);
    const std::uint64_t first = next_integer_;
    next_integer_ += count;
    if (scale == kZeroGroupScale) {
      std::fill_n(values, value_bytes_ * count, std::byte{0});
      return true;
    }
    if (scale == kRawGroupScale) {
      ++raw_groups_;
      std::span<const std::byte> raw;
      if (!reader_.take(value_bytes_ * count, &raw)) return fail("shorter than its raw groups");
      std::copy(raw.begin(), raw.end(), values);
      return true;
    }
    // Unsigned comparison: negative scales are above kInfScale.
    if (scale < kLeastBlockScale || scale >= kInfScale) return fail("a scale is out of range");
    unpack_bits(packed_, first, count, bits_, patterns_.data());
    if (!block_int_dequantize_simd(dtype_, patterns_.data(), count, scale, bits_, values)) {
      return fail("an integer is out of range");
    }
    return true;
  }

  bool fail(const char* reason) {
    reason_ = reason;
    return false;
  }

  const DType dtype_;
  const std::size_t value_bytes_;
  const unsigned bits_;
  const std::uint32_t group_;
  ByteReader reader_;
  std::span<const std::byte> scales_;
  std::span<const std::byte> packed_;
  std::uint64_t next_group_ = 0;
  std::uint64_t next_integer_ = 0;
  std::uint32_t raw_groups_ = 0;
  const char* reason_ = "";
  std::array<std::uint8_t, kMostBlockGroup> patterns_;
};

}  // namespace

Status decode_int_block(const BlockContext& context, const BlockEntry& entry,
                        std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                        CodedScratch&) {
  return IntBlockDecoder(context, bytes).decode(pieces, entry.outlier_count);
}

}  // namespace gradwire::internal
