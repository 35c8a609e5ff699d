#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "codec/accumulate.h"
#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/fused_groups.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"
#include "quantize/exponent_form_ref.h"
#include "quantize/float32_simd.h"
#include "quantize/half_float.h"
#include "quantize/step_form_ref.h"

namespace gradwire::internal {
namespace {

struct Sections {
  std::span<const std::byte> table;
  std::span<const std::byte> lane_states;
  std::span<const std::byte> words;
  std::span<const std::byte> scales;
  std::span<const std::byte> plane;
  std::span<const std::byte> outliers;
  const std::byte* end = nullptr;  // of the block
};

Error corrupt(const char* section, const std::string& what) {
  return corrupt_block(std::string("coded block: ") + section + ": " + what);
}

// No product overflows: values and groups are counts of memory that exists, below 2^48.
Status cut_sections(const BlockEntry& entry, std::span<const std::byte> bytes, std::uint64_t values,
                    std::uint64_t groups, std::size_t value_size, Sections* sections) {
  sections->end = bytes.data() + bytes.size();
  ByteReader reader(bytes);
  const bool own_table = (entry.flags & kBlockFlagOwnTable) != 0;
  const bool complete =
      reader.take(own_table ? kTableBytes : 0, &sections->table) &&
      reader.take(std::uint64_t{kLaneStateBytes} * entry.lanes, &sections->lane_states) &&
      reader.take(std::uint64_t{kWordBytes} * entry.word_count, &sections->words) &&
      reader.take(bit_array_bytes(groups, entry.scale_bits), &sections->scales) &&
      reader.take(values * entry.plane_bytes, &sections->plane) &&
      reader.take(std::uint64_t{entry.outlier_count} * value_size, &sections->outliers);
  if (!complete) return corrupt("length", "the sections need more than the block's bytes");
  if (reader.remaining() > 0) return corrupt("length", "bytes are left over behind the sections");
  return {};
}

Status check_entry(const BlockEntry& entry, bool step_form, std::uint32_t mantissa_bits) {
  const auto wrong = [](const char* field, std::uint32_t value) {
    return corrupt("index entry", std::string(field) + " " + std::to_string(value));
  };
  if (!valid_lane_count(entry.lanes)) return wrong("lanes", entry.lanes);
  if (entry.scale_bits > 12) return wrong("scale_bits", entry.scale_bits);
  if ((entry.flags & ~kBlockFlagOwnTable) != 0) return wrong("flags", entry.flags);
  const std::uint32_t most_mantissa = step_form ? 0 : mantissa_bits;
  if (entry.mantissa > most_mantissa) return wrong("mantissa", entry.mantissa);
  if (entry.plane_bytes > kMaxPlaneBytes || 8u * entry.plane_bytes > entry.mantissa) {
    return wrong("plane_bytes", entry.plane_bytes);
  }
  const MantissaSplit split{entry.mantissa, entry.plane_bytes};
  if (split.lane_bits() > kMaxExponentLaneBits) return wrong("plane_bytes", entry.plane_bytes);
  return {};
}

// Builds the decoder's table from the block's own or the built-in one.
// `lane_bits` are those of the form.
Status prepare_table(TableKind kind, std::uint8_t number, std::span<const std::byte> own,
                     bool step_form, const TokenBits& lane_bits, TansDecodeTable* table) {
  if (own.empty()) {
    const Frequencies* frequencies = find_builtin_table(kind, number);
    if (frequencies == nullptr) return corrupt("table", "no table " + std::to_string(number));
    make_decode_table(kind, *frequencies, lane_bits, table);
    return {};
  }
  Frequencies frequencies;
  std::memcpy(frequencies.data(), own.data(), kTableBytes);
  if (const char* problem = check_frequencies(kind, frequencies, lane_bits)) {
    return corrupt("own table", problem);
  }
  for (std::uint32_t token = 0; step_form && token < kTokenEscape; ++token) {
    if (frequencies[token] == 0 || step_token_exists(token)) continue;
    return corrupt("own table", "token " + std::to_string(token) + " does not occur in this form");
  }
  make_decode_table(kind, frequencies, lane_bits, table);
  return {};
}

// Decodes the groups of one block in order.
template <typename Format>
class BlockDecoder {
  using Bits = typename Format::Bits;
  static constexpr bool kIsFloat32 = std::is_same_v<Format, Float32Format>;
  static constexpr bool kIsBFloat16 = std::is_same_v<Format, BFloat16Format>;
  static constexpr bool kHalf = kIsHalf<Format>;
  // Outliers of halves wait as float32.
  using Outlier = std::conditional_t<kHalf, std::uint32_t, Bits>;

 public:
  BlockDecoder(const BlockContext& context, const BlockEntry& entry, const Sections& sections,
               CodedScratch* scratch)
      : group_(context.spec->group),
        step_form_(is_step_form(*context.spec)),
        entry_(entry),
        sections_(sections),
        split_{entry.mantissa, entry.plane_bytes},
        vector_(entry.lanes == kMaxLanes && has_vector_decoder()),
        fused_((kIsFloat32 || kIsBFloat16 || (kHalf && step_form_)) && vector_ &&
               has_fused_groups()),
        add_(kIsFloat32 && context.add),
        scratch_(*scratch),
        outliers_{sections.outliers.data(), entry.outlier_count} {}

  Status decode(std::span<const PieceOut> pieces) {
    if constexpr (kHalf) widen_outliers();
    const char* problem =
        start_decoder(sections_.lane_states, entry_.lanes, sections_.words, &scratch_.decoder);
    if (problem != nullptr) return corrupt("lane states", problem);
    if (vector_) {
      start_vector_decoder(scratch_.decode_table, scratch_.decoder, sections_.end,
                           &scratch_.vector_decoder);
    }
    for (const PieceOut& piece : pieces) GRADWIRE_RETURN_IF_ERROR(decode_piece(piece));
    if (vector_) finish_vector_decoder(scratch_.vector_decoder, &scratch_.decoder);
    problem = finish_decoder(scratch_.decoder);
    if (problem != nullptr) return corrupt("words", problem);
    if (outliers_.left != 0) {
      return corrupt("outliers", std::to_string(outliers_.left) + " of " +
                                     std::to_string(entry_.outlier_count) + " are not used");
    }
    return {};
  }

 private:
  Status decode_piece(const PieceOut& piece) {
    for (std::uint64_t begin = 0; begin < piece.count;) {
      const std::uint64_t rest = piece.count - begin;
      std::byte* const out = piece.data + begin * sizeof(Bits);
      std::uint64_t done = 0;
      if constexpr (kIsFloat32) {
        if (fused_ && reinterpret_cast<std::uintptr_t>(out) % alignof(Bits) == 0) {
          const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, kMaxGroup));
          done = decode_fused(most / group_, reinterpret_cast<Bits*>(out));
        }
      } else if constexpr (kHalf) {
        if (fused_) {
          const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, kMaxGroup));
          done = decode_fused(most / group_, scratch_.wide.data());
          narrow_halves<Format>(scratch_.wide.data(), static_cast<std::size_t>(done), out);
        }
      }
      if (outliers_.missing) return too_few_outliers();
      if (done == 0) {
        done = std::min<std::uint64_t>(group_, rest);
        GRADWIRE_RETURN_IF_ERROR(decode_group(static_cast<std::uint32_t>(done), out));
      }
      begin += done;
    }
    return {};
  }

  void widen_outliers() {
    std::vector<std::uint32_t>& wide = scratch_.wide_outliers;
    wide.resize(entry_.outlier_count);
    widen_halves<Format>(sections_.outliers.data(), wide.size(), wide.data());
    outliers_.next = reinterpret_cast<const std::byte*>(wide.data());
  }

  // Decodes up to `groups` whole groups that the fused kernels take; the number of values.
  std::uint64_t decode_fused(std::uint32_t groups, std::uint32_t* values) noexcept {
    std::uint32_t known = 0;
    for (; known < groups; ++known) {
      const std::uint32_t code =
          bit_array_get(sections_.scales, next_group_ + known, entry_.scale_bits);
      const std::int32_t scale = entry_.scale_base + static_cast<std::int32_t>(code) - 1;
      if (code == 0) break;
      if (!(step_form_ ? fused_step_scale<Format>(scale) : fused_exponent_scale(scale))) break;
      scratch_.scale_batch[known] = static_cast<std::int16_t>(scale);
    }
    if (known == 0) return 0;
    const FusedGroups batch{scratch_.scale_batch.data(), group_, known};
    const std::uint32_t done =
        step_form_ ? decode_step_groups(batch, &scratch_.decoder, &scratch_.vector_decoder,
                                        &outliers_, add_, values)
                   : decode_exponent_groups(batch, split_, sections_.plane.data() + plane_offset_,
                                            &scratch_.decoder, &scratch_.vector_decoder, &outliers_,
                                            add_, values);
    next_group_ += done;
    plane_offset_ += std::size_t{done} * group_ * split_.plane_bytes;
    return std::uint64_t{done} * group_;
  }

  Error too_few_outliers() const {
    return corrupt("outliers", "more are used than the " + std::to_string(entry_.outlier_count) +
                                   " that there are");
  }

  Status decode_group(std::uint32_t count, std::byte* out) {
    const std::byte* plane = sections_.plane.data() + plane_offset_;
    plane_offset_ += std::size_t{count} * split_.plane_bytes;
    const std::uint32_t code = bit_array_get(sections_.scales, next_group_++, entry_.scale_bits);
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % alignof(Bits) == 0;
    const bool in_place = aligned && !add_;
    auto* values = reinterpret_cast<Bits*>(in_place ? out : scratch_.values.data());
    if (code == 0) {
      std::memset(values, 0, count * sizeof(Bits));
      if (!in_place) put(values, count, out);
      return {};
    }
    const std::int32_t scale = entry_.scale_base + static_cast<std::int32_t>(code) - 1;
    const std::int32_t least = step_form_ ? Format::kLeastExponent : 0;
    const std::int32_t most = step_form_ ? Format::kBias : Format::kExponentMax;
    if (scale < least || scale > most) {
      return corrupt("scales", "scale " + std::to_string(scale) + " is outside " +
                                   std::to_string(least) + ".." + std::to_string(most));
    }
    decode_tokens(count);
    if (!dequantize(values, count, scale, plane)) {
      return corrupt("words", "a value is outside the type");
    }
    if (!place_outliers(values, count)) return too_few_outliers();
    if (!in_place) put(values, count, out);
    return {};
  }

  void put(const Bits* values, std::uint32_t count, std::byte* out) const noexcept {
    const auto* bytes = reinterpret_cast<const std::byte*>(values);
    if (add_) {
      accumulate(DType::kFloat32, bytes, count, out);
    } else {
      std::memcpy(out, bytes, count * sizeof(Bits));
    }
  }

  void decode_tokens(std::uint32_t count) noexcept {
    std::uint8_t* tokens = scratch_.tokens.data();
    std::uint16_t* lane_bits = scratch_.lane_bits.data();
    if (vector_) {
      decode_group_simd(scratch_.decode_table, &scratch_.decoder, &scratch_.vector_decoder, tokens,
                        lane_bits, count);
    } else {
      decode_group_ref(scratch_.decode_table, &scratch_.decoder, tokens, lane_bits, count);
    }
  }

  bool dequantize(Bits* values, std::uint32_t count, std::int32_t scale,
                  const std::byte* plane) noexcept {
    const std::uint8_t* tokens = scratch_.tokens.data();
    const std::uint16_t* lane_bits = scratch_.lane_bits.data();
    if constexpr (kIsFloat32) {
      return step_form_
                 ? dequantize_step_simd(tokens, lane_bits, count, scale, values)
                 : dequantize_exponent_simd(tokens, lane_bits, plane, count, scale, split_, values);
    } else {
      if (!step_form_) {
        return dequantize_exponent_ref<Format>(tokens, lane_bits, plane, count, scale, split_,
                                               values);
      }
      if constexpr (kHalf) {
        return dequantize_step_halves(values, count, scale);
      } else {
        return dequantize_step_ref(tokens, lane_bits, count, scale, values);
      }
    }
  }

  bool dequantize_step_halves(Bits* values, std::uint32_t count, std::int32_t scale) noexcept {
    auto* const wide = reinterpret_cast<std::uint32_t*>(scratch_.changed.data());
    const std::uint8_t* tokens = scratch_.tokens.data();
    if (!dequantize_step_simd(tokens, scratch_.lane_bits.data(), count, scale, wide)) return false;
    narrow_halves<Format>(wide, count, reinterpret_cast<std::byte*>(values));
    if (step_finite_most<Format>(scale) == kStepMost) return true;
    bool finite = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool number = (values[i] & Format::kMagnitude) < Format::kInfinity;
      finite = finite && (number || tokens[i] == kTokenEscape);
    }
    return finite;
  }

  // False if there are fewer outliers than escapes.
  bool place_outliers(Bits* values, std::uint32_t count) noexcept {
    if (!any_escape_simd(scratch_.tokens.data(), count)) return true;
    std::uint32_t escapes = 0;
    for (std::uint32_t i = 0; i < count; ++i) escapes += scratch_.tokens[i] == kTokenEscape;
    if (outliers_.left < escapes) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (scratch_.tokens[i] != kTokenEscape) continue;
      const Outlier outlier = load_le<Outlier>(outliers_.next);
      if constexpr (kHalf) {
        values[i] = narrow_half<Format>(outlier);
      } else {
        values[i] = outlier;
      }
      outliers_.next += sizeof(Outlier);
    }
    outliers_.left -= escapes;
    return true;
  }

  const std::uint32_t group_;
  const bool step_form_;
  const BlockEntry& entry_;
  const Sections& sections_;
  const MantissaSplit split_;
  const bool vector_;  // lanes in vector registers
  const bool fused_;   // quantizer too
  const bool add_;     // float32 only
  CodedScratch& scratch_;
  std::size_t plane_offset_ = 0;
  std::uint64_t next_group_ = 0;
  OutlierCursor outliers_;
};

template <typename Format>
Status decode_as(const BlockContext& context, const BlockEntry& entry,
                 std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                 CodedScratch& scratch) {
  const CodecSpec& spec = *context.spec;
  const bool step_form = is_step_form(spec);
  GRADWIRE_RETURN_IF_ERROR(check_entry(entry, step_form, Format::kMantissaBits));
  std::uint64_t values = 0;
  for (const PieceOut& piece : pieces) values += piece.count;
  Sections sections;
  GRADWIRE_RETURN_IF_ERROR(cut_sections(entry, bytes, values, count_groups(pieces, spec.group),
                                        sizeof(typename Format::Bits), &sections));
  const TokenBits lane_bits =
      step_form ? step_lane_bits(Format::kMantissaBits)
                : exponent_lane_bits(MantissaSplit{entry.mantissa, entry.plane_bytes});
  GRADWIRE_RETURN_IF_ERROR(prepare_table(table_kind(spec), context.table, sections.table, step_form,
                                         lane_bits, &scratch.decode_table));
  return BlockDecoder<Format>(context, entry, sections, &scratch).decode(pieces);
}

}  // namespace

Status decode_coded_block(const BlockContext& context, const BlockEntry& entry,
                          std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                          CodedScratch& scratch) {
  const FpEnvironment environment;
  switch (context.dtype) {
    case DType::kFloat32:
      return decode_as<Float32Format>(context, entry, bytes, pieces, scratch);
    case DType::kFloat64:
      return decode_as<Float64Format>(context, entry, bytes, pieces, scratch);
    case DType::kFloat16:
      return decode_as<Float16Format>(context, entry, bytes, pieces, scratch);
    case DType::kBFloat16:
      return decode_as<BFloat16Format>(context, entry, bytes, pieces, scratch);
    default:
      return corrupt("index entry", "a coded block of a type that has none");
  }
}

}  // namespace gradwire::internal
