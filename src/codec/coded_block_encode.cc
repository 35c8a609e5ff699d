#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "codec/coded_block.h"
#include "codec/fused_groups.h"
#include "codec/group_rule.h"
#include "codec/table_rule.h"
#include "core/bit_array.h"
#include "core/byte_writer.h"
#include "core/fp_environment.h"
#include "entropy/own_table.h"
#include "quantize/exponent_form_ref.h"
#include "quantize/float32_simd.h"
#include "quantize/half_float.h"
#include "quantize/step_form_ref.h"

namespace gradwire::internal {
namespace {

// What stands for the scale of a group until the base is known.
constexpr std::int16_t kZeroGroup = INT16_MIN;
constexpr std::int16_t kUndefinedScale = INT16_MIN + 1;  // no finite value: the base will do

template <typename T>
void grow(std::vector<T>* buffer, std::uint64_t size) {
  if (buffer->size() < size) buffer->resize(static_cast<std::size_t>(size));
}

// Encodes the groups of one block from the last to the first.
template <typename Format>
class BlockEncoder {
  using Bits = typename Format::Bits;
  static constexpr bool kIsFloat32 = std::is_same_v<Format, Float32Format>;
  // The upper half of a float32: same exponents, so same scales, tokens and lane bits.
  static constexpr bool kIsBFloat16 = std::is_same_v<Format, BFloat16Format>;
  static constexpr bool kHalf = kIsHalf<Format>;

 public:
  BlockEncoder(const BlockContext& context, std::span<const Piece> pieces, CodedScratch* scratch)
      : spec_(*context.spec),
        rule_(*context.spec),
        context_(context),
        builtin_(*find_builtin_table(table_kind(spec_), context.table)),
        pieces_(pieces),
        scratch_(*scratch),
        step_form_(is_step_form(spec_)) {
    for (const Piece& piece : pieces) values_ += piece.count;
    groups_ = count_groups(pieces, spec_.group);
    lanes_ = coded_lanes(values_);
    vector_ = lanes_ == kMaxLanes && has_vector_encoder();
    const bool as_float32 = kIsFloat32 || kIsBFloat16 || (kHalf && step_form_);
    fused_ = as_float32 && vector_ && has_fused_groups();
    if (!step_form_) split_ = split_mantissa(kept_mantissa());
    form_ = step_form_ ? step_table_form<Format>() : exponent_table_form<Format>(split_);
    form_.kind = table_kind(spec_);
  }

  // `out`: where write() will put the block.
  void encode(std::span<std::byte> out) {
    grow(&scratch_.scales, groups_);
    grow(&scratch_.plane, values_ * split_.plane_bytes);
    const TokenSample sample = take_sample();
    const OwnTable own = choose_own_table(sample, form_, builtin_);
    own_table_ = own.worth_it;
    table_ = own.worth_it ? own.frequencies : builtin_;
    code_block(out);
    if (own.worth_it && own_table_failed(sample, own, coded_bits())) {
      own_table_ = false;
      table_ = builtin_;
      code_block(out);
    }
    finish_scales();
    if (scale_bits_ == 0) lanes_ = 1;  // nothing but zero groups: no lane has coded a value
  }

  // The block's bytes; false if `out`, the same as for encode(), is too small for them.
  bool write(std::span<std::byte> out, BlockEntry* entry) const {
    const auto word_count = static_cast<std::uint64_t>(words_end_ - words_) / kWordBytes;
    const std::uint64_t scale_bytes = bit_array_bytes(groups_, scale_bits_);
    const std::uint64_t length =
        table_bytes() + kLaneStateBytes * lanes_ + kWordBytes * word_count + scale_bytes +
        values_ * split_.plane_bytes + scratch_.outliers.size() * sizeof(Bits);
    if (length > out.size()) return false;

    std::byte* at = append(out.data(), table_.data(), table_bytes());
    write_lane_states(scratch_.encode_lanes, lanes_, at);
    at += kLaneStateBytes * lanes_;
    at = in_place_ ? at + kWordBytes * word_count : append(at, words_, kWordBytes * word_count);
    BitPacker packer(at, scale_bits_);
    packer.append(scratch_.scales.data(), static_cast<std::size_t>(groups_));
    at = packer.finish();
    at = append(at, scratch_.plane.data(), values_ * split_.plane_bytes);
    for (std::size_t i = scratch_.outliers.size(); i-- > 0; at += sizeof(Bits)) {
      store_le(at, static_cast<Bits>(scratch_.outliers[i]));
    }

    *entry = BlockEntry{};
    entry->length = static_cast<std::uint32_t>(length);
    entry->lanes = static_cast<std::uint8_t>(lanes_);
    entry->plane_bytes = static_cast<std::uint8_t>(split_.plane_bytes);
    entry->scale_bits = static_cast<std::uint8_t>(scale_bits_);
    entry->scale_base = scale_base_;
    entry->mantissa = static_cast<std::uint8_t>(split_.mantissa);
    entry->flags = own_table_ ? kBlockFlagOwnTable : 0;
    entry->word_count = static_cast<std::uint32_t>(word_count);
    entry->outlier_count = static_cast<std::uint32_t>(scratch_.outliers.size());
    return true;
  }

 private:
  static std::byte* append(std::byte* at, const void* source, std::uint64_t bytes) noexcept {
    if (bytes > 0) std::memcpy(at, source, static_cast<std::size_t>(bytes));
    return at + bytes;
  }

  std::uint64_t table_bytes() const noexcept { return own_table_ ? kTableBytes : 0; }

  // Table, words and outliers: what the table decides about.
  std::uint64_t coded_bits() const noexcept {
    const auto words = static_cast<std::uint64_t>(words_end_ - words_);
    return 8 * (table_bytes() + words + sizeof(Bits) * scratch_.outliers.size());
  }

  // The tokens of some groups, none of them escaping for want of a frequency.
  TokenSample take_sample() noexcept {
    TokenTally tally{};
    q_max_ = step_token_last(kStepTokenMax);
    range_ = {0, kExponentTokenMax};
    TokenSample sample;
    sample.values = values_;
    const std::uint32_t stride = sample_stride(values_);
    sample.complete = stride == 1;
    std::uint64_t first = 0;
    std::uint64_t i = 0;
    for (const Piece& piece : pieces_) {
      const std::uint64_t end = first + count_groups(std::span(&piece, 1), spec_.group);
      // The offset moves, so that a period in the values does not choose them.
      for (std::uint64_t group = 0; (group = stride * i + 11 * i % stride) < end; ++i) {
        sample_group(piece, group - first, i % 4, &sample, &tally);
      }
      first = end;
    }
    sample.counts = total_counts(tally);
    return sample;
  }

  void sample_group(const Piece& piece, std::uint64_t group, std::uint64_t quarter,
                    TokenSample* sample, TokenTally* tally) noexcept {
    const std::uint64_t begin = group * spec_.group;
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(spec_.group, piece.count - begin));
    const auto from = static_cast<std::uint32_t>(sample->complete ? 0 : count * quarter / 4);
    const auto to =
        static_cast<std::uint32_t>(sample->complete ? count : count * (quarter + 1) / 4);
    if (from == to) return;
    sample->visited += to - from;
    piece_ = &piece;
    const std::byte* const data = piece.data + begin * sizeof(Bits);
    const Bits* values = aligned_values(data, count);
    widen(values, count);
    const GroupScale scale = group_scale(values, count);
    if (is_zero_group(scale)) return;
    const std::int32_t number = scale_number(scale);
    if (rule_.rounds()) {
      values = round_group(values, count, data, number);
      if (values == nullptr) return;
    }
    widen(values + from, to - from);
    quantize(values + from, to - from, number, scratch_.plane.data());
    count_tokens(scratch_.tokens.data(), to - from, tally);
  }

  // The groups with table_.
  void code_block(std::span<std::byte> out) {
    if (step_form_) {
      q_max_ = largest_step(table_);
    } else {
      range_ = exponent_range(table_);
    }
    make_encode_table(form_.kind, table_, form_.lane_bits, &scratch_.encode_table);
    // The words go to the block itself if it has room for the most that there could be.
    const std::uint64_t before = table_bytes() + kLaneStateBytes * lanes_;
    const std::uint64_t most_words = kWordBytes * (values_ + kEncodeSlackWords);
    in_place_ = out.size() >= before + most_words;
    if (!in_place_) grow(&scratch_.words, most_words);
    words_ = in_place_ ? out.data() + before : scratch_.words.data();
    scratch_.outliers.clear();
    scratch_.encode_lanes.fill(TansEncodeLane{});
    if (vector_) start_vector_encoder(scratch_.encode_table, &scratch_.vector_encoder);
    words_end_ = words_;
    std::uint64_t index = values_;
    std::uint64_t group = groups_;
    for (std::size_t p = pieces_.size(); p-- > 0;) {
      const Piece& piece = pieces_[p];
      index -= piece.count;
      group -= piece.count / spec_.group + (piece.count % spec_.group != 0);
      encode_piece(piece, scratch_.scales.data() + group,
                   scratch_.plane.data() + index * split_.plane_bytes);
    }
    if (vector_) finish_vector_encoder(scratch_.vector_encoder, &scratch_.encode_lanes);
  }

  bool rounds_mantissa() const noexcept { return spec_.id == CodecId::kNearLossless; }

  std::uint32_t kept_mantissa() const noexcept {
    if (rounds_mantissa()) return std::min<std::uint32_t>(spec_.mantissa, Format::kMantissaBits);
    // Most gradients use the last bit within a few values; only those that do not are read in full.
    constexpr std::uint64_t kSample = 4096;
    typename Format::Wide mantissas = 0;
    for (const Piece& piece : pieces_) {
      for (std::uint64_t first = 0; first < piece.count && (mantissas & 1) == 0; first += kSample) {
        mantissas |=
            collect(piece.data + first * sizeof(Bits), std::min(piece.count - first, kSample));
      }
    }
    return used_mantissa_bits<Format>(mantissas);
  }

  static typename Format::Wide collect(const std::byte* values, std::uint64_t count) noexcept {
    if constexpr (kIsFloat32) return collect_mantissas_simd(values, count);
    return collect_mantissas<Format>(values, count);
  }

  // Scales and plane of the piece's groups go to `scales`, `plane`.
  void encode_piece(const Piece& piece, std::int16_t* scales, std::byte* plane) {
    piece_ = &piece;
    const std::uint32_t group = spec_.group;
    std::uint64_t groups = piece.count / group;
    if (const auto rest = static_cast<std::uint32_t>(piece.count % group)) {
      const std::uint64_t begin = groups * group;
      scales[groups] =
          encode_group(piece.data + begin * sizeof(Bits), rest, plane + begin * split_.plane_bytes);
    }
    const std::uint64_t most = kMaxGroup / group;
    while (groups > 0) {
      const auto batch = static_cast<std::uint32_t>(std::min(groups, most));
      groups -= batch;
      const std::uint64_t begin = groups * group;
      encode_batch(piece.data + begin * sizeof(Bits), batch, scales + groups,
                   plane + begin * split_.plane_bytes);
    }
  }

  // Whole groups.
  void encode_batch(const std::byte* data, std::uint32_t groups, std::int16_t* scales,
                    std::byte* plane) {
    const std::uint32_t group = spec_.group;
    if constexpr (kIsFloat32) {
      if (fused_ && reinterpret_cast<std::uintptr_t>(data) % alignof(Bits) == 0) {
        return encode_fused(reinterpret_cast<const Bits*>(data), data, groups, scales, plane);
      }
    } else if constexpr (kHalf) {
      if (fused_) {
        std::uint32_t* const wide = scratch_.wide.data();
        widen_halves<Format>(data, groups * group, wide);
        return encode_fused(wide, data, groups, scales, plane);
      }
    }
    for (std::uint32_t g = groups; g-- > 0;) {
      const std::size_t begin = std::size_t{g} * group;
      scales[g] =
          encode_group(data + begin * sizeof(Bits), group, plane + begin * split_.plane_bytes);
    }
  }

  // encode_batch() with quantizer and coder at once, for the groups that allow it. `values`: those
  // at `data` as float32.
  void encode_fused(const std::uint32_t* values, const std::byte* data, std::uint32_t groups,
                    std::int16_t* scales, std::byte* plane) {
    const std::uint32_t group = spec_.group;
    find_scales(values, groups);
    if (rule_.rounds()) values = round_batch(values, data, groups);
    for (std::uint32_t end = groups; end > 0;) {
      std::uint32_t first = end;
      while (first > 0 && fused_scale(scratch_.batch_scales[first - 1], &scales[first - 1])) {
        --first;
      }
      const std::size_t begin = std::size_t{first} * group;
      if (first < end) {
        code_fused(values + begin, {scales + first, group, end - first},
                   plane + begin * split_.plane_bytes);
      }
      end = first;
      if (end == 0) break;
      const std::size_t odd = std::size_t{--end} * group;
      if (step_form_ && scratch_.batch_scales[end].zero) {
        scales[end] = kZeroGroup;
        continue;
      }
      scales[end] =
          encode_group(data + odd * sizeof(Bits), group, plane + odd * split_.plane_bytes);
    }
  }

  // The scales of whole groups, as float32.
  void find_scales(const std::uint32_t* values, std::uint32_t groups) noexcept {
    GroupScale* const scales = scratch_.batch_scales.data();
    if (rule_.is_group_rms()) {
      return group_scales_simd(values, spec_.group, groups, rule_.factor(), scales);
    }
    for (std::uint32_t g = 0; g < groups; ++g) {
      const std::size_t begin = std::size_t{g} * spec_.group;
      scales[g] = rule_.template scale<Float32Format>(values + begin, spec_.group, *piece_);
    }
  }

  // Stochastic rounding of the groups that the fused kernels take; those that it leaves nothing of
  // become zero groups.
  const std::uint32_t* round_batch(const std::uint32_t* values, const std::byte* data,
                                   std::uint32_t groups) noexcept {
    const std::uint32_t group = spec_.group;
    std::uint32_t* const rounded = scratch_.wide.data();
    for (std::uint32_t g = 0; g < groups; ++g) {
      std::int16_t number = 0;
      if (!fused_scale(scratch_.batch_scales[g], &number)) continue;
      const std::size_t begin = std::size_t{g} * group;
      scratch_.batch_scales[g].zero =
          !rule_.template round<Float32Format>(context_, values + begin, group, *piece_,
                                               offset_of(data) + begin, number, rounded + begin);
    }
    return rounded;
  }

  // Index in the piece of the value at `data`.
  std::uint64_t offset_of(const std::byte* data) const noexcept {
    return static_cast<std::uint64_t>(data - piece_->data) / sizeof(Bits);
  }

  // The scale of a group that the fused kernels take; false for others.
  bool fused_scale(const GroupScale& scale, std::int16_t* number) const noexcept {
    if (scale.zero || !scale.finite) return false;
    *number = static_cast<std::int16_t>(scale_number(scale));
    return step_form_ ? fused_step_scale<Format>(*number) : fused_exponent_scale(*number, range_);
  }

  void code_fused(const std::uint32_t* values, FusedGroups groups, std::byte* plane) {
    std::uint32_t* const outliers = scratch_.outlier_batch.data();
    FusedEncodeOut out{words_end_, outliers};
    if (step_form_) {
      encode_step_groups(values, groups, q_max_, &scratch_.vector_encoder, &out);
    } else {
      encode_exponent_groups(values, groups, {split_, range_, rounds_mantissa()},
                             &scratch_.vector_encoder, plane, &out);
    }
    words_end_ = out.words;
    for (const std::uint32_t* outlier = outliers; outlier != out.outliers; ++outlier) {
      if constexpr (kHalf) {
        scratch_.outliers.push_back(narrow_half<Format>(*outlier));
      } else {
        scratch_.outliers.push_back(*outlier);
      }
    }
  }

  // Returns the group's scale, kZeroGroup or kUndefinedScale.
  std::int16_t encode_group(const std::byte* data, std::uint32_t count, std::byte* plane) {
    const Bits* values = aligned_values(data, count);
    widen(values, count);
    const GroupScale scale = group_scale(values, count);
    if (is_zero_group(scale)) {
      if (split_.plane_bytes > 0) std::memset(plane, 0, count * split_.plane_bytes);
      return kZeroGroup;
    }
    const std::int32_t number = scale_number(scale);
    if (rule_.rounds()) {
      values = round_group(values, count, data, number);
      if (values == nullptr) return kZeroGroup;
      widen(values, count);
    }
    if (quantize(values, count, number, plane) > 0) {
      for (std::uint32_t i = count; i-- > 0;) {
        if (scratch_.tokens[i] == kTokenEscape) scratch_.outliers.push_back(values[i]);
      }
    }
    code(count);
    return scale.finite || scale.zero ? static_cast<std::int16_t>(number) : kUndefinedScale;
  }

  // Stochastic rounding of a group that lies at `data`; null if it leaves nothing of the group.
  const Bits* round_group(const Bits* values, std::uint32_t count, const std::byte* data,
                          std::int32_t number) noexcept {
    auto* const rounded = reinterpret_cast<Bits*>(scratch_.noisy.data());
    const bool any = rule_.template round<Format>(context_, values, count, *piece_, offset_of(data),
                                                  number, rounded);
    return any ? rounded : nullptr;
  }

  // The values where they are, or copied if they lie askew.
  const Bits* aligned_values(const std::byte* data, std::uint32_t count) noexcept {
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(Bits) == 0) {
      return reinterpret_cast<const Bits*>(data);
    }
    std::memcpy(scratch_.values.data(), data, count * sizeof(Bits));
    return reinterpret_cast<const Bits*>(scratch_.values.data());
  }

  // Halves of the step form to changed(), as float32.
  void widen(const Bits* values, std::uint32_t count) const noexcept {
    if constexpr (kHalf) {
      if (!step_form_) return;
      widen_halves<Format>(reinterpret_cast<const std::byte*>(values), count,
                           changed<std::uint32_t>());
    }
  }

  template <typename T>
  T* changed() const noexcept {
    return reinterpret_cast<T*>(scratch_.changed.data());
  }

  // Halves of the step form lie in changed() as float32.
  GroupScale group_scale(const Bits* values, std::uint32_t count) const noexcept {
    if constexpr (kHalf) {
      if (step_form_) {
        return rule_.template scale<Float32Format>(changed<std::uint32_t>(), count, *piece_);
      }
    }
    return rule_.template scale<Format>(values, count, *piece_);
  }

  void code(std::uint32_t count) noexcept {
    const std::uint8_t* tokens = scratch_.tokens.data();
    const std::uint16_t* lane_bits = scratch_.lane_bits.data();
    if (vector_) {
      words_end_ = encode_group_simd(scratch_.encode_table, tokens, lane_bits, count,
                                     &scratch_.vector_encoder, words_end_);
    } else {
      words_end_ = encode_group_ref(scratch_.encode_table, lanes_, tokens, lane_bits, count,
                                    &scratch_.encode_lanes, words_end_);
    }
  }

  bool is_zero_group(const GroupScale& scale) const noexcept {
    const bool keeps_sign = spec_.id == CodecId::kLossless;
    return scale.zero && !(keeps_sign && scale.negative_zero);
  }

  std::int32_t scale_number(const GroupScale& scale) const noexcept {
    return step_form_ ? step_scale(scale) : exponent_scale(scale);
  }

  static std::int32_t step_scale(const GroupScale& scale) noexcept {
    if (!scale.finite || scale.vanishes) return Format::kLeastExponent;
    return std::clamp(scale.exponent, Format::kLeastExponent, Format::kBias);
  }

  static std::int32_t exponent_scale(const GroupScale& scale) noexcept {
    if (!scale.finite || scale.vanishes || scale.zero) return 0;
    return std::clamp(scale.exponent + Format::kBias + kExponentHeadroom, 0, Format::kExponentMax);
  }

  // Returns the number of escapes. Halves of the step form lie in changed() as float32.
  std::uint32_t quantize(const Bits* values, std::uint32_t count, std::int32_t scale,
                         std::byte* plane) noexcept {
    std::uint8_t* tokens = scratch_.tokens.data();
    std::uint16_t* lane_bits = scratch_.lane_bits.data();
    if constexpr (kIsFloat32) {
      if (step_form_) return quantize_step_simd(values, count, scale, q_max_, tokens, lane_bits);
      const Bits* source = values;
      if (rounds_mantissa()) {
        round_mantissa_simd(values, count, split_.mantissa, changed<Bits>());
        source = changed<Bits>();
      }
      return quantize_exponent_simd(source, count, scale, split_, range_, tokens, lane_bits, plane);
    } else {
      if (kHalf && step_form_) {
        const std::uint32_t most = std::min(q_max_, step_finite_most<Format>(scale));
        return quantize_step_simd(changed<std::uint32_t>(), count, scale, most, tokens, lane_bits);
      }
      if constexpr (!kHalf) {
        if (step_form_) return quantize_step_ref(values, count, scale, q_max_, tokens, lane_bits);
      }
      const Bits* source = values;
      if (rounds_mantissa()) {
        std::memcpy(changed<Bits>(), values, count * sizeof(Bits));
        round_mantissa_ref<Format>(changed<Bits>(), count, split_.mantissa);
        source = changed<Bits>();
      }
      return quantize_exponent_ref<Format>(source, count, scale, split_, range_, tokens, lane_bits,
                                           plane);
    }
  }

  // Turns scales into codes: 0 for zero groups, else 1 + scale - base.
  void finish_scales() noexcept {
    const std::span<std::int16_t> scales(scratch_.scales.data(), static_cast<std::size_t>(groups_));
    std::int32_t smallest = INT16_MAX;
    std::int32_t largest = INT16_MIN;
    bool coded = false;
    for (const std::int16_t scale : scales) {
      coded = coded || scale != kZeroGroup;
      if (scale == kZeroGroup || scale == kUndefinedScale) continue;
      smallest = std::min<std::int32_t>(smallest, scale);
      largest = std::max<std::int32_t>(largest, scale);
    }
    if (smallest > largest) smallest = largest = 0;
    for (std::int16_t& scale : scales) {
      const std::int32_t code = scale == kZeroGroup        ? 0
                                : scale == kUndefinedScale ? 1
                                                           : 1 + scale - smallest;
      scale = static_cast<std::int16_t>(code);
    }
    scale_base_ = static_cast<std::int16_t>(smallest);
    const auto codes = static_cast<std::uint32_t>(largest - smallest + 1);
    scale_bits_ = coded ? static_cast<std::uint32_t>(std::bit_width(codes)) : 0;
  }

  const CodecSpec& spec_;
  const GroupRule rule_;
  const BlockContext& context_;
  const Frequencies& builtin_;
  const std::span<const Piece> pieces_;
  CodedScratch& scratch_;
  const bool step_form_;
  bool vector_ = false;           // lanes in vector registers
  bool fused_ = false;            // quantizer too
  const Piece* piece_ = nullptr;  // that is being coded
  std::uint64_t values_ = 0;
  std::uint64_t groups_ = 0;
  std::uint32_t lanes_ = 0;
  std::uint32_t q_max_ = 0;  // step form
  MantissaSplit split_;      // exponent form
  TokenRange range_;         // exponent form
  TableForm form_;
  Frequencies table_{};
  bool own_table_ = false;
  bool in_place_ = false;  // the words lie in the block itself
  std::byte* words_ = nullptr;
  std::byte* words_end_ = nullptr;
  std::int16_t scale_base_ = 0;
  std::uint32_t scale_bits_ = 0;
};

template <typename Format>
bool encode_as(const BlockContext& context, std::span<const Piece> pieces, CodedScratch& scratch,
               std::span<std::byte> out, BlockEntry* entry) {
  BlockEncoder<Format> encoder(context, pieces, &scratch);
  encoder.encode(out);
  return encoder.write(out, entry);
}

}  // namespace

bool encode_coded_block(const BlockContext& context, std::span<const Piece> pieces,
                        CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry) {
  const FpEnvironment environment;
  switch (context.dtype) {
    case DType::kFloat32:
      return encode_as<Float32Format>(context, pieces, scratch, out, entry);
    case DType::kFloat64:
      return encode_as<Float64Format>(context, pieces, scratch, out, entry);
    case DType::kFloat16:
      return encode_as<Float16Format>(context, pieces, scratch, out, entry);
    case DType::kBFloat16:
      return encode_as<BFloat16Format>(context, pieces, scratch, out, entry);
    default:
      return false;  // the codec does not take it: stored
  }
}

}  // namespace gradwire::internal
