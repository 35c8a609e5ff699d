// Blocks of scales | codes | raw groups (docs/format.md 4.4): one scale for the values of a group,
// one code of fixed width for each value. What a scale and a code mean is a Kernel's business:
//
//   using Scale = ...;                    // bit pattern of a scale, unsigned
//   static constexpr Scale kRaw;          // of a group whose values stand in the third section
//   unsigned bits() const;                // of a code, 1 to 8
//   Scale encode(const std::byte* values, std::size_t count, const std::uint16_t* noise,
//                std::uint8_t* codes);    // kRaw: codes do not matter; noise: null unless kNoise
//   static constexpr bool kNoise;         // whether encode() draws noise
//   const char* decode(Scale scale, const std::uint8_t* codes, std::size_t count,
//                      std::byte* values);  // null, or what is wrong with them
#ifndef GRADWIRE_CODEC_GROUPED_BLOCK_H_
#define GRADWIRE_CODEC_GROUPED_BLOCK_H_

#include <algorithm>
#include <array>
#include <string>

#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/piece_groups.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {

inline constexpr std::size_t kGroupedValueBytes = 4;
inline constexpr std::size_t kMostGroupedGroup = RunNoise::kMostValues;

// As EncodeBlock of registry.h.
template <typename Kernel>
bool encode_grouped_block(Kernel& kernel, const BlockContext& context,
                          std::span<const Piece> pieces, std::span<std::byte> out,
                          BlockEntry* entry) {
  using Scale = typename Kernel::Scale;
  const CodecSpec& spec = *context.spec;
  ByteWriter writer(out);
  std::span<std::byte> scales;
  std::span<std::byte> packed;
  if (!writer.take(sizeof(Scale) * count_groups(pieces, spec.group), &scales) ||
      !writer.take(bit_array_bytes(count_values(pieces), kernel.bits()), &packed)) {
    return false;
  }
  std::byte* next_scale = scales.data();
  BitPacker packer(packed.data(), kernel.bits());
  RunNoise noise;
  std::array<std::uint8_t, kMostGroupedGroup> codes;
  for (const Piece& piece : pieces) {
    const std::uint64_t key = noise_key(spec.seed, context.step, piece.tensor, context.sender,
                                        static_cast<std::uint8_t>(context.phase));
    const auto encode_group = [&](std::uint64_t offset, std::size_t count) {
      const std::byte* const values = piece.data + kGroupedValueBytes * offset;
      const std::uint16_t* group_noise = nullptr;
      if (Kernel::kNoise) group_noise = noise.fill(key, piece.first_index + offset, count);
      const Scale scale = kernel.encode(values, count, group_noise, codes.data());
      store_le(next_scale, scale);
      next_scale += sizeof(Scale);
      if (scale == Kernel::kRaw) {
        std::fill_n(codes.begin(), count, std::uint8_t{0});
        if (!writer.write_bytes({values, kGroupedValueBytes * count})) return false;
        ++entry->outlier_count;
      }
      packer.append(codes.data(), count);
      return true;
    };
    if (!for_each_group(piece.count, spec.group, encode_group)) return false;
  }
  packer.finish();
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

// As DecodeBlock of registry.h.
template <typename Kernel>
Status decode_grouped_block(Kernel& kernel, const BlockContext& context, const BlockEntry& entry,
                            std::span<const std::byte> bytes, std::span<const PieceOut> pieces) {
  using Scale = typename Kernel::Scale;
  const std::uint32_t group = context.spec->group;
  ByteReader reader(bytes);
  std::span<const std::byte> scales;
  std::span<const std::byte> packed;
  if (!reader.take(sizeof(Scale) * count_groups(pieces, group), &scales) ||
      !reader.take(bit_array_bytes(count_values(pieces), kernel.bits()), &packed)) {
    return corrupt_block("shorter than its scales and codes");
  }
  const std::byte* next_scale = scales.data();
  std::uint64_t next_code = 0;
  std::uint32_t raw_groups = 0;
  const char* wrong = nullptr;
  std::array<std::uint8_t, kMostGroupedGroup> codes;
  for (const PieceOut& piece : pieces) {
    const auto decode_group = [&](std::uint64_t offset, std::size_t count) {
      std::byte* const values = piece.data + kGroupedValueBytes * offset;
      const auto scale = load_le<Scale>(next_scale);
      next_scale += sizeof(Scale);
      if (scale == Kernel::kRaw) {
        std::span<const std::byte> raw;
        ++raw_groups;
        wrong =
            reader.take(kGroupedValueBytes * count, &raw) ? nullptr : "shorter than its raw groups";
        std::copy(raw.begin(), raw.end(), values);
      } else {
        unpack_bits(packed, next_code, count, kernel.bits(), codes.data());
        wrong = kernel.decode(scale, codes.data(), count, values);
      }
      next_code += count;
      return wrong == nullptr;
    };
    if (!for_each_group(piece.count, group, decode_group)) return corrupt_block(wrong);
  }
  if (raw_groups != entry.outlier_count) {
    return corrupt_block("has " + std::to_string(raw_groups) + " raw groups, the index says " +
                         std::to_string(entry.outlier_count));
  }
  if (reader.remaining() != 0) return corrupt_block("longer than its sections");
  return {};
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_GROUPED_BLOCK_H_
