// All codecs. Adding one is one entry here (and its number in gradwire/frame.h): parsing, text,
// pipeline, tests, golden frames and bench go through this table.
#ifndef GRADWIRE_CODEC_REGISTRY_H_
#define GRADWIRE_CODEC_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "codec/block_codec.h"

namespace gradwire::internal {

struct CodedScratch;

// Parameters of CodecSpec text; how each is read and written stands in spec.cc.
enum class Parameter : std::uint8_t {
  kStep,
  kBound,
  kScale,
  kMantissa,
  kBits,
  kDtype,
  kGroup,
  kRounding,
  kFilter,
  kSeed,
  kCoder,
  kSpeed,  // coder
  kBlock,
  // Names that the papers of the baselines use.
  kFormat,    // cast_dtype
  kBucket,    // group
  kClip,      // step
  kFraction,  // step
  kNorm,      // variant
  kSample,    // variant
  kCoding,    // variant
};

// Encodes one block into `out`; false when it would need more than out.size() bytes. Fills all
// of `entry` but kind and hash.
using EncodeBlock = bool (*)(const BlockContext& context, std::span<const Piece> pieces,
                             CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
// Decodes one block of this codec's kind into `pieces`. `bytes` may be anything: errors are
// kCorruptBlock, no read leaves `bytes`.
using DecodeBlock = Status (*)(const BlockContext& context, const BlockEntry& entry,
                               std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                               CodedScratch& scratch);

struct CodecEntry {
  CodecSpec defaults;  // also names the codec: defaults.id
  std::string_view summary;
  std::string_view parameters;  // for people
  std::string_view bound;
  std::span<const Parameter> keys;  // in the order of the canonical text
  std::span<const std::string_view> examples;
  // Of the blocks that are not stored. Null functions: every block is stored.
  BlockKind kind = BlockKind::kStored;
  EncodeBlock encode_block = nullptr;
  DecodeBlock decode_block = nullptr;
};

// In the order of their numbers.
std::span<const CodecEntry> codec_entries() noexcept;
// Null for a number or name that names none.
const CodecEntry* find_codec(CodecId id) noexcept;
const CodecEntry* find_codec(std::string_view name) noexcept;

// A short name of a codec with parameters.
struct CodecAlias {
  std::string_view name;
  CodecSpec spec;
};
std::span<const CodecAlias> codec_aliases() noexcept;

// kOutOfRange (field, value, range) or kUnknownCodec unless `spec` can be written to a header.
Status check_spec(const CodecSpec& spec);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_REGISTRY_H_
