// Blocks of scales | codes | raw groups (docs/format.md 4.4): one scale for the values of a group,
// one code for each value. What a scale and a code mean is a Kernel's business:
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

#include "codec/code_section.h"
#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/piece_groups.h"
#include "core/counter_rng.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {

inline constexpr std::size_t kGroupedValueBytes = 4;
inline constexpr std::size_t kMostGroupedGroup = RunNoise::kMostValues;

// Writes the values of the groups whose scale is kRaw, bit for bit.
template <typename Scale>
bool write_raw_groups(Scale raw, std::span<const std::byte> scales, std::span<const Piece> pieces,
                      std::uint32_t group, ByteWriter* writer) {
  const std::byte* next_scale = scales.data();
  for (const Piece& piece : pieces) {
    const auto write_group = [&](std::uint64_t offset, std::size_t count) {
      const auto scale = load_le<Scale>(next_scale);
      next_scale += sizeof(Scale);
      return scale != raw || writer->write_bytes({piece.data + kGroupedValueBytes * offset,
                                                  kGroupedValueBytes * count});
    };
    if (!for_each_group(piece.count, group, write_group)) return false;
  }
  return true;
}

// As EncodeBlock of registry.h.
template <typename CodeWriter, typename Kernel>
bool encode_grouped_block(Kernel& kernel, const BlockContext& context,
                          std::span<const Piece> pieces, std::span<std::byte> out,
                          BlockEntry* entry) {
  using Scale = typename Kernel::Scale;
  const CodecSpec& spec = *context.spec;
  ByteWriter writer(out);
  std::span<std::byte> scales;
  CodeWriter code_writer;
  if (!writer.take(sizeof(Scale) * count_groups(pieces, spec.group), &scales) ||
      !code_writer.begin(&writer, count_values(pieces), kernel.bits())) {
    return false;
  }
  std::byte* next_scale = scales.data();
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
        ++entry->outlier_count;
      }
      return code_writer.append(codes.data(), count);
    };
    if (!for_each_group(piece.count, spec.group, encode_group)) return false;
  }
  if (!code_writer.finish(&writer)) return false;
  if (entry->outlier_count != 0 &&
      !write_raw_groups<Scale>(Kernel::kRaw, scales, pieces, spec.group, &writer)) {
    return false;
  }
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

// As DecodeBlock of registry.h.
template <typename CodeReader, typename Kernel>
Status decode_grouped_block(Kernel& kernel, const BlockContext& context, const BlockEntry& entry,
                            std::span<const std::byte> bytes, std::span<const PieceOut> pieces) {
  using Scale = typename Kernel::Scale;
  const std::uint32_t group = context.spec->group;
  ByteReader reader(bytes);
  std::span<const std::byte> scales;
  if (!reader.take(sizeof(Scale) * count_groups(pieces, group), &scales)) {
    return corrupt_block("shorter than its scales and codes");
  }
  CodeReader code_reader;
  const char* wrong = code_reader.begin(&reader, count_values(pieces), kernel.bits());
  if (wrong != nullptr) return corrupt_block(wrong);
  const std::byte* next_scale = scales.data();
  std::uint32_t raw_groups = 0;
  std::array<std::uint8_t, kMostGroupedGroup> codes;
  for (const PieceOut& piece : pieces) {
    const auto decode_group = [&](std::uint64_t offset, std::size_t count) {
      std::byte* const values = piece.data + kGroupedValueBytes * offset;
      const auto scale = load_le<Scale>(next_scale);
      next_scale += sizeof(Scale);
      wrong = code_reader.next(codes.data(), count);
      if (wrong != nullptr) return false;
      if (scale == Kernel::kRaw) {
        std::span<const std::byte> raw;
        ++raw_groups;
        wrong =
            reader.take(kGroupedValueBytes * count, &raw) ? nullptr : "shorter than its raw groups";
        std::copy(raw.begin(), raw.end(), values);
      } else {
        wrong = kernel.decode(scale, codes.data(), count, values);
      }
      return wrong == nullptr;
    };
    if (!for_each_group(piece.count, group, decode_group)) return corrupt_block(wrong);
  }
  if (raw_groups != entry.outlier_count) {
    return corrupt_block("has " + std::to_string(raw_groups) + " raw groups, the index says " +
                         std::to_string(entry.outlier_count));
  }
  wrong = code_reader.at_end();
  if (wrong != nullptr) return corrupt_block(wrong);
  if (reader.remaining() != 0) return corrupt_block("longer than its sections");
  return {};
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_GROUPED_BLOCK_H_
