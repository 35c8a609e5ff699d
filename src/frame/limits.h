// Ranges of header fields (docs/format.md 1.1), for reader, writer and CodecSpec::parse.
#ifndef GRADWIRE_FRAME_LIMITS_H_
#define GRADWIRE_FRAME_LIMITS_H_

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "frame/block_index.h"
#include "gradwire/frame.h"
#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// Numbers from `least` to `most` that are multiples of `multiple`, or powers of two.
struct Range {
  static constexpr std::uint32_t kPowerOfTwo = 0;  // as `multiple`

  std::uint32_t least = 0;
  std::uint32_t most = 0;
  std::uint32_t multiple = 1;

  constexpr bool contains(std::uint64_t value) const noexcept {
    const bool fits = multiple == kPowerOfTwo ? std::has_single_bit(value) : value % multiple == 0;
    return value >= least && value <= most && fits;
  }
};

// Numbers from `least` to `most`, and 0 if `or_zero`. Not even 0 without a range: then it is +0.
struct RealRange {
  double least = 0;
  double most = 0;
  bool or_zero = false;

  // False for NaN and -0.
  bool contains(double value) const noexcept;
  bool is_none() const noexcept { return most == 0; }
};

// Bits of `variant` for qsgd.
inline constexpr std::uint32_t kQsgdMax = 1;    // the scale is the largest magnitude, not the norm
inline constexpr std::uint32_t kQsgdElias = 2;  // Elias codes, not fixed width

inline constexpr Range kBlockValuesRange{4096, 1048576, 4096};
inline constexpr Range kMantissaRange{1, 16, 1};
inline constexpr unsigned kAllBoundOptions = 3;
// One scale for each part: its values still go in groups of this many.
inline constexpr std::uint32_t kPerPartGroup = 4096;
// Numbers of built-in tables (format.md 5.3).
inline constexpr std::uint8_t kExponentTable = 1;
inline constexpr std::uint8_t kFirstStepTable = 16;
inline constexpr std::uint8_t kStepTables = 23;

// What may stand in the fields of a frame that depend on its codec. The fields are those of the
// header; sets of small numbers are bit sets. Left out: the field is 0.
struct CodecLimits {
  CodecId id = CodecId::kNone;
  std::string_view name;  // as in CodecSpec text
  std::uint32_t dtypes = 0;
  BlockKind kind = BlockKind::kStored;  // of the blocks that are not stored
  bool counts_outliers = false;         // the index counts outliers, or raw groups, of such blocks
  Range group = {};
  std::uint32_t bits = 0;
  std::uint32_t cast_dtypes = 0;
  std::uint32_t roundings = 1u << static_cast<unsigned>(Rounding::kNearest);
  Range variant = {};
  RealRange quantizer_step = {};  // near_lossless: in the step form
};

// In the order of their numbers.
std::span<const CodecLimits> all_codec_limits() noexcept;
// Null for a number that names no codec.
const CodecLimits* find_limits(CodecId codec) noexcept;

// Whether a bit set of CodecLimits has a number.
constexpr bool has_number(std::uint32_t set, std::uint32_t number) noexcept {
  return number < 32 && ((set >> number) & 1u) != 0;
}
// What a field may be, for people: "from 8 to 4096, a multiple of 8"; "4, 6 or 8"; "0 for this
// codec" where it has no meaning.
std::string range_text(const Range& range);
std::string range_text(const RealRange& range);
std::string bits_text(std::uint32_t set);
std::string dtypes_text(std::uint32_t set);
std::string roundings_text(std::uint32_t set);

constexpr bool is_coded(CodecId codec) noexcept {
  return codec == CodecId::kLossless || codec == CodecId::kNearLossless ||
         codec == CodecId::kErrorBounded;
}
// What may code the values of a codec.
constexpr bool is_coder(CodecId codec, Coder coder) noexcept {
  if (!is_coded(codec)) return coder == Coder::kNone;
  return coder == Coder::kTans || coder == Coder::kHuffman;
}
// Coded codecs: values in the step form; else the exponent form.
constexpr bool is_step_form(CodecId codec, std::uint32_t mantissa) noexcept {
  return codec == CodecId::kErrorBounded || (codec == CodecId::kNearLossless && mantissa == 0);
}
// Roundings of a codec; near_lossless rounds with noise to a mantissa only.
constexpr std::uint32_t roundings_of(const CodecLimits& limits, std::uint32_t mantissa) noexcept {
  const bool step_form = limits.id == CodecId::kNearLossless && mantissa == 0;
  return step_form ? CodecLimits{}.roundings : limits.roundings;
}

constexpr bool is_bound_scale(BoundScale scale) noexcept {
  return scale >= BoundScale::kRms && scale <= BoundScale::kAbsolute;
}
// Bounds of `error_bounded`. X, which the step is made of, is the bound, or twice the bound for
// `nearest`, whose error is half a step. Relative to the RMS it has the range of near_lossless; a
// step beyond the largest magnitude or the range would leave nothing, one below 2^-10 of it no
// token; absolute: the normal float32.
constexpr RealRange bound_range(BoundScale scale, Rounding rounding) noexcept {
  switch (scale) {
    case BoundScale::kRms:
      return rounding == Rounding::kNearest ? RealRange{0x1p-9, 4} : RealRange{0x1p-8, 8};
    case BoundScale::kAbsolute:
      return {0x1p-126, 0x1p127};
    default:
      return {0x1p-10, 1};
  }
}

// Whether the header of a frame with coded blocks may name this table.
constexpr bool is_coded_table(bool step_form, std::uint8_t table) noexcept {
  if (!step_form) return table == kExponentTable;
  return table >= kFirstStepTable && table < kFirstStepTable + kStepTables;
}

// Name of a codec as in CodecSpec text; "unknown" for a number that names none.
std::string_view codec_name(CodecId codec) noexcept;
// All element types, in the order of their numbers.
std::span<const DType> all_dtypes() noexcept;
// Whether frames of this codec may hold this type.
bool codec_takes(CodecId codec, DType dtype) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_LIMITS_H_
