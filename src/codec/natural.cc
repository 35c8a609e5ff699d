// Codec `natural` (docs/format.md 4.3): codes | raw values.
#include <array>
#include <string>

#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "codec/piece_groups.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "quantize/natural.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {
namespace {

constexpr std::size_t kValueBytes = 4;
constexpr std::uint32_t kRun = RunNoise::kMostValues;

}  // namespace

bool encode_natural_block(const BlockContext& context, std::span<const Piece> pieces, CodedScratch&,
                          std::span<std::byte> out, BlockEntry* entry) {
  ByteWriter writer(out);
  std::span<std::byte> packed;
  if (!writer.take(bit_array_bytes(count_values(pieces), kNaturalBits), &packed)) return false;
  BitPacker packer(packed.data(), kNaturalBits);
  RunNoise noise;
  std::array<std::uint16_t, kRun> codes;
  for (const Piece& piece : pieces) {
    const std::uint64_t key = noise_key(context.spec->seed, context.step, piece.tensor,
                                        context.sender, static_cast<std::uint8_t>(context.phase));
    const auto encode_run = [&](std::uint64_t offset, std::size_t count) {
      const std::byte* const values = piece.data + kValueBytes * offset;
      const std::uint16_t* const run = noise.fill(key, piece.first_index + offset, count);
      const std::size_t raw = natural_quantize_simd(values, count, run, codes.data());
      packer.append(codes.data(), count);
      entry->outlier_count += static_cast<std::uint32_t>(raw);
      for (std::size_t i = 0; raw != 0 && i < count; ++i) {
        if (is_natural_raw(codes[i]) &&
            !writer.write_bytes({values + kValueBytes * i, kValueBytes})) {
          return false;
        }
      }
      return true;
    };
    if (!for_each_group(piece.count, kRun, encode_run)) return false;
  }
  packer.finish();
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

Status decode_natural_block(const BlockContext&, const BlockEntry& entry,
                            std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                            CodedScratch&) {
  ByteReader reader(bytes);
  std::span<const std::byte> packed;
  if (!reader.take(bit_array_bytes(count_values(pieces), kNaturalBits), &packed)) {
    return corrupt_block("shorter than its codes");
  }
  std::array<std::uint16_t, kRun> codes;
  std::uint64_t next_code = 0;
  std::uint64_t raw_values = 0;
  const auto load_raw = [&](std::size_t count, std::byte* values) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_natural_raw(codes[i])) continue;
      std::uint32_t bits = 0;
      if (!reader.read(&bits)) return false;
      store_le(values + kValueBytes * i, bits);
    }
    return true;
  };
  for (const PieceOut& piece : pieces) {
    const auto decode_run = [&](std::uint64_t offset, std::size_t count) {
      std::byte* const values = piece.data + kValueBytes * offset;
      unpack_bits(packed, next_code, count, kNaturalBits, codes.data());
      next_code += count;
      const std::size_t raw = natural_dequantize_simd(codes.data(), count, values);
      raw_values += raw;
      return raw == 0 || load_raw(count, values);
    };
    if (!for_each_group(piece.count, kRun, decode_run)) {
      return corrupt_block("shorter than its raw values");
    }
  }
  if (raw_values != entry.outlier_count) {
    return corrupt_block("has " + std::to_string(raw_values) + " raw values, the index says " +
                         std::to_string(entry.outlier_count));
  }
  if (reader.remaining() != 0) return corrupt_block("longer than its sections");
  return {};
}

}  // namespace gradwire::internal
