// Codec `block` (docs/format.md 4.2): scales | integers | raw groups.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "quantize/block_int.h"

namespace gradwire::internal {
namespace {

constexpr std::size_t kValueBytes = 4;
constexpr std::size_t kScaleBytes = 2;

template <typename Pieces>
std::uint64_t count_values(Pieces pieces) noexcept {
  std::uint64_t count = 0;
  for (const auto& piece : pieces) count += piece.count;
  return count;
}

// Calls visit(offset, count) for each group of a piece of `values` values; stops at false.
template <typename Visit>
bool for_each_group(std::uint64_t values, std::uint32_t group, Visit visit) {
  for (std::uint64_t offset = 0; offset < values; offset += group) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(group, values - offset));
    if (!visit(offset, count)) return false;
  }
  return true;
}

// Integers of one group after the other, with the noise that belongs to their places.
class GroupQuantizer {
 public:
  explicit GroupQuantizer(const BlockContext& context) noexcept : context_(context) {}

  void start_piece(const Piece& piece) noexcept {
    key_ = noise_key(context_.spec->seed, context_.step, piece.tensor, context_.sender,
                     static_cast<std::uint8_t>(context_.phase));
  }

  // `index`: of the group's first value inside its parameter.
  const std::int8_t* quantize(const std::byte* values, std::size_t count, std::uint16_t scale,
                              std::uint64_t index) noexcept {
    const unsigned bits = context_.spec->bits;
    if (scale == kZeroGroupScale || scale == kRawGroupScale) {
      std::fill_n(integers_.data(), count, std::int8_t{0});
    } else if (context_.spec->rounding == Rounding::kNearest) {
      block_int_quantize_nearest(values, count, scale, bits, integers_.data());
    } else {
      // Noise comes in pairs that start at even indices; an odd start skips one half.
      const std::size_t skipped = index % 2;
      fill_noise(key_, index / 2, (skipped + count + 1) / 2, pairs_.data());
      std::memcpy(noise_.data(), pairs_.data(), 2 * (skipped + count));
      block_int_quantize_stochastic(values, count, scale, bits, noise_.data() + skipped,
                                    integers_.data());
    }
    return integers_.data();
  }

 private:
  const BlockContext& context_;
  std::uint64_t key_ = 0;
  std::array<std::int8_t, kMostBlockGroup> integers_;
  std::array<std::uint32_t, kMostBlockGroup / 2 + 1> pairs_;
  std::array<std::uint16_t, kMostBlockGroup + 2> noise_;
};

}  // namespace

bool encode_int_block(const BlockContext& context, std::span<const Piece> pieces, CodedScratch&,
                      std::span<std::byte> out, BlockEntry* entry) {
  const std::uint32_t group = context.spec->group;
  ByteWriter writer(out);
  std::span<std::byte> scales;
  std::span<std::byte> packed;
  if (!writer.take(kScaleBytes * count_groups(pieces, group), &scales) ||
      !writer.take(bit_array_bytes(count_values(pieces), context.spec->bits), &packed)) {
    return false;
  }
  ByteWriter scale_writer(scales);
  BitPacker packer(packed.data(), context.spec->bits);
  GroupQuantizer quantizer(context);
  std::uint32_t raw_groups = 0;
  for (const Piece& piece : pieces) {
    quantizer.start_piece(piece);
    const auto encode_group = [&](std::uint64_t offset, std::size_t count) {
      const std::byte* values = piece.data + kValueBytes * offset;
      const std::uint16_t scale = block_int_scale(values, count);
      packer.append(quantizer.quantize(values, count, scale, piece.first_index + offset), count);
      if (!scale_writer.write(scale)) return false;
      if (scale != kRawGroupScale) return true;
      ++raw_groups;
      return writer.write_bytes({values, kValueBytes * count});
    };
    if (!for_each_group(piece.count, group, encode_group)) return false;
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
      : bits_(context.spec->bits), group_(context.spec->group), reader_(bytes) {}

  Status decode(std::span<const PieceOut> pieces, std::uint32_t raw_groups) {
    if (!reader_.take(kScaleBytes * count_groups(pieces, group_), &scales_) ||
        !reader_.take(bit_array_bytes(count_values(pieces), bits_), &packed_)) {
      return corrupt_block("shorter than its scales and integers");
    }
    for (const PieceOut& piece : pieces) {
      const auto decode_one = [&](std::uint64_t offset, std::size_t count) {
        return decode_group(count, piece.data + kValueBytes * offset);
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
      std::fill_n(values, kValueBytes * count, std::byte{0});
      return true;
    }
    if (scale == kRawGroupScale) {
      ++raw_groups_;
      std::span<const std::byte> raw;
      if (!reader_.take(kValueBytes * count, &raw)) return fail("shorter than its raw groups");
      std::copy(raw.begin(), raw.end(), values);
      return true;
    }
    // Unsigned comparison: negative scales are above kInfScale.
    if (scale < kLeastBlockScale || scale >= kInfScale) return fail("a scale is out of range");
    unpack_bits(packed_, first, count, bits_, patterns_.data());
    if (!block_int_dequantize(patterns_.data(), count, scale, bits_, values)) {
      return fail("an integer is out of range");
    }
    return true;
  }

  bool fail(const char* reason) {
    reason_ = reason;
    return false;
  }

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
