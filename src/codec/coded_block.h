// Coded blocks (docs/format.md sections 2, 3, 5, 8): where quantizers and entropy coder meet.
#ifndef GRADWIRE_CODEC_CODED_BLOCK_H_
#define GRADWIRE_CODEC_CODED_BLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/block_codec.h"
#include "entropy/tans_decode.h"
#include "entropy/tans_decode_simd.h"
#include "entropy/tans_encode.h"
#include "entropy/tans_encode_simd.h"
#include "entropy/tans_table.h"
#include "frame/limits.h"
#include "quantize/group_scale_ref.h"

namespace gradwire::internal {

// Groups that are coded together, so that each step finds the values of the one before in L1: as
// many as make up kMaxGroup values, of 64 at least.
inline constexpr std::uint32_t kMaxBatch = kMaxGroup / 64;

// Memory that calls reuse; vectors only grow. One per thread.
struct CodedScratch {
  // One group. `values` is storage for numbers of any size.
  alignas(64) std::array<std::byte, kMaxGroup * sizeof(std::uint64_t)> values;
  // Like `values`: the group rounded to nearest, or halves as float32; rounded with noise.
  alignas(64) std::array<std::byte, kMaxGroup * sizeof(std::uint64_t)> changed;
  alignas(64) std::array<std::byte, kMaxGroup * sizeof(std::uint64_t)> noisy;
  alignas(64) std::array<std::uint16_t, kMaxGroup> lane_bits;
  alignas(64) std::array<std::uint8_t, kMaxGroup> tokens;
  // A batch of groups.
  alignas(64) std::array<std::uint32_t, kMaxGroup> outlier_batch;
  alignas(64) std::array<std::uint32_t, kMaxGroup> wide;  // halves as float32, rounded values
  std::array<GroupScale, kMaxBatch> batch_scales;
  std::array<std::int16_t, kMaxBatch> scale_batch;
  // One block, encoder.
  std::vector<std::byte> words;  // where the block itself has no room for the most there could be
  std::vector<std::int16_t> scales;
  std::vector<std::byte> plane;
  std::vector<std::uint64_t> outliers;  // bit patterns, last value first
  TansEncodeTable encode_table;
  TansEncodeLanes encode_lanes;
  TansVectorEncoder vector_encoder;
  // One block, codec cocktail.
  std::vector<std::uint32_t> sample_places;
  std::vector<std::uint32_t> sample_values;
  // One block, decoder.
  std::vector<std::uint32_t> wide_outliers;  // of halves, as float32
  TansDecodeTable decode_table;
  TansDecoder decoder;
  TansVectorDecoder vector_decoder;
};

// Groups of `group` > 0 values in a block.
template <typename AnyPiece>
std::uint64_t count_groups(std::span<const AnyPiece> pieces, std::uint32_t group) noexcept {
  std::uint64_t groups = 0;
  for (const AnyPiece& piece : pieces) groups += piece.count / group + (piece.count % group != 0);
  return groups;
}

// The header's table field for a codec that makes coded blocks.
std::uint8_t coded_table(const CodecSpec& spec) noexcept;

constexpr TableKind table_kind(const CodecSpec& spec) noexcept {
  return spec.coder == Coder::kHuffman ? TableKind::kHuffman : TableKind::kTans;
}
// True for the step form, false for the exponent form.
constexpr bool is_step_form(const CodecSpec& spec) noexcept {
  return is_step_form(spec.id, spec.mantissa);
}
// X of the step form: the step is 2^floor(log2(X scale)). Exact.
constexpr double step_factor(const CodecSpec& spec) noexcept {
  if (spec.id != CodecId::kErrorBounded) return spec.step;
  return spec.rounding == Rounding::kNearest ? 2 * spec.bound : spec.bound;
}

// Lanes of a block of `count` values.
constexpr std::uint32_t coded_lanes(std::uint64_t count) noexcept {
  return count >= 32768 ? 64 : count >= 8192 ? 32 : count >= 4096 ? 16 : 1;
}

// Encodes one block into `out`; false when it would need more than out.size() bytes. Fills all of
// `entry` but kind and hash. context.table must be that of coded_table().
bool encode_coded_block(const BlockContext& context, std::span<const Piece> pieces,
                        CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);

// Decodes one block. `bytes` and `entry` may be anything; errors are kCorruptBlock, and then what
// `pieces` hold is unspecified. context.table must name a table of the codec's form.
Status decode_coded_block(const BlockContext& context, const BlockEntry& entry,
                          std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                          CodedScratch& scratch);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_CODED_BLOCK_H_
