#include <array>
#include <bit>

#include "codec/fused_groups.h"
#include "quantize/group_scale_ref.h"
#include "quantize/step_form_format.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/fused_groups_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/lane_ops-inl.h"
#include "core/simd_dispatch.h"
#include "entropy/tans_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

bool has_fused() { return GRADWIRE_HAVE_LANE_OPS; }

#if GRADWIRE_HAVE_LANE_OPS

// Bit 15 of a lane: the value's sign in lane bits and upper halves, the mark of an escape in
// decoder tables.
constexpr int kTopBit = 0x8000;

// The encoder reads downwards, batch after batch of kMaxGroup values: the batch to come is asked
// for while this one is coded.
constexpr std::size_t kPrefetch = kMaxGroup;

// Keeps the values of the escapes among 32, the last first.
HWY_NOINLINE std::uint32_t* keep_outliers(LaneMask escapes, const std::uint32_t* values,
                                          std::uint32_t* outliers) {
  const std::uint32_t bits = mask_bits(escapes);
  for (std::uint32_t value = kHalfLanes; value-- > 0;) {
    const std::uint32_t lane = value < 16 ? 2 * value : 2 * value - 31;
    if ((bits >> lane & 1) != 0) *outliers++ = values[value];
  }
  return outliers;
}

struct HalfTokens {
  Lanes tokens;  // low five bits
  Lanes lane_bits;
};

// ---- step form ----

struct StepQuantizer {
  WideFloat scale, magic;
  Lanes limit;  // upper half of the largest pattern that has a token
};

// As quantize_step_ref(), whose derivation holds: the result of the rounding has the token in its
// bits 26 to 22. The largest q is the last of its token, so that the upper halves can be compared.
HWY_INLINE HalfTokens quantize_step_half(const std::uint32_t* values,
                                         const StepQuantizer& quantizer, std::uint32_t** outliers) {
  const WidePair pattern =
      add_and_subtract(mul_float(load_wide(values), quantizer.scale), quantizer.magic);
  const Lanes high = narrow<16>(pattern);
  HalfTokens half = {shift_right<6>(high),
                     select_bits(set_lanes(kTopBit), high, narrow<7>(pattern))};
  const Lanes magnitude = and_(high, set_lanes(0x7FFF));
  if (HWY_UNLIKELY(any_greater_unsigned(magnitude, quantizer.limit))) {
    const LaneMask escapes = greater_unsigned(magnitude, quantizer.limit);
    half.tokens = select(escapes, set_lanes(kStepEscape), half.tokens);
    half.lane_bits = clear(escapes, half.lane_bits);
    *outliers = keep_outliers(escapes, values, *outliers);
  }
  return half;
}

template <typename Tables>
HWY_NOINLINE void encode_step_rows(const Tables& prepared, const std::uint32_t* values,
                                   const FusedGroups& groups, std::uint32_t q_max,
                                   TansVectorEncoder* encoder, FusedEncodeOut* out) {
  const KeptTables<Tables> tables = prepared;
  const auto largest = std::bit_cast<std::uint32_t>(static_cast<float>(q_max) * 0x1p-14f);
  StepQuantizer quantizer = {set_float(0), set_float(0x1.8p9f),
                             set_lanes(static_cast<int>((largest >> 16) | 0x3Fu))};
  HalfState low = load_half(encoder->lanes, 0);
  HalfState high = load_half(encoder->lanes, kHalfLanes);
  std::byte* words = out->words;
  std::uint32_t* outliers = out->outliers;
  for (std::uint32_t g = groups.groups; g-- > 0;) {
    quantizer.scale = set_float(power_of_two(-14 - groups.scales[g]));
    const std::uint32_t* const first = values + std::size_t{g} * groups.group;
    for (const std::uint32_t* row = first + groups.group; row != first;) {
      row -= kMaxLanes;
      prefetch_row(row, kPrefetch);
      const HalfTokens b = quantize_step_half(row + kHalfLanes, quantizer, &outliers);
      words = encode_half(tables, b.tokens, b.lane_bits, high, words);
      const HalfTokens a = quantize_step_half(row, quantizer, &outliers);
      words = encode_half(tables, a.tokens, a.lane_bits, low, words);
    }
  }
  store_half(low, 0, &encoder->lanes);
  store_half(high, kHalfLanes, &encoder->lanes);
  *out = {words, outliers};
}

void encode_step(const std::uint32_t* values, const FusedGroups& groups, std::uint32_t q_max,
                 TansVectorEncoder* encoder, FusedEncodeOut* out) {
  const TansVectorEncodeTable& table = encoder->table;
  if (encoder->is_prefix_code) {
    encode_step_rows(load_prefix_tables(table), values, groups, q_max, encoder, out);
  } else {
    encode_step_rows(load_encode_tables(table), values, groups, q_max, encoder, out);
  }
}

// ---- exponent form, encoder ----

struct ExponentQuantizer {
  Lanes top, first, width, mask;
  WideRounding rounding;
  int shift;
};

// Zeros and escapes, which `others` are.
HWY_NOINLINE void mark_others(LaneMask others, const std::uint32_t* values, bool rounds,
                              HalfTokens* half, WidePair* coded, std::uint32_t** outliers) {
  const WidePair v = load_wide(values);
  const LaneMask zeros = is_zero(or_(and_(narrow<16>(v), set_lanes(0x7FFF)), low_words(v)));
  const LaneMask escapes = and_not(others, zeros);
  half->tokens = select(zeros, set_lanes(kExponentZero), half->tokens);
  if (rounds) half->lane_bits = clear(zeros, half->lane_bits);
  if (!any(escapes)) return;
  half->tokens = select(escapes, set_lanes(kExponentEscape), half->tokens);
  half->lane_bits = clear(escapes, half->lane_bits);
  *coded = clear_wide(escapes, *coded);
  *outliers = keep_outliers(escapes, values, *outliers);
}

template <bool kRounds, int kPlaneBytes>
HWY_INLINE HalfTokens quantize_exponent_half(const std::uint32_t* values,
                                             const ExponentQuantizer& quantizer, std::byte* plane,
                                             std::uint32_t** outliers) {
  WidePair v = load_wide(values);
  if constexpr (kRounds) v = round_wide(v, quantizer.rounding);
  const Lanes high = narrow<16>(v);
  // Field 0 and that of Inf and NaN are out of range for every scale taken here, and what rounding
  // makes of NaN (a carry into the sign, field 0) or of subnormals (field 1 at most) is so too.
  const Lanes offset = sub(quantizer.top, shift_right<7>(and_(high, set_lanes(0x7FFF))));
  HalfTokens half = {add(offset, quantizer.first),
                     select_bits(set_lanes(kTopBit), high, and_(narrow<8>(v), quantizer.mask))};
  if (HWY_UNLIKELY(any_greater_unsigned(offset, quantizer.width))) {
    // Copies: what has an address would live in memory for all values.
    HalfTokens marked = half;
    WidePair coded = v;
    mark_others(greater_unsigned(offset, quantizer.width), values, kRounds, &marked, &coded,
                outliers);
    half = marked;
    v = coded;
  }
  if constexpr (kPlaneBytes > 0) store_shifted<kPlaneBytes>(v, quantizer.shift, plane);
  return half;
}

template <bool kRounds, int kPlaneBytes, typename Tables>
HWY_NOINLINE void encode_exponent_rows(const Tables& prepared, const std::uint32_t* values,
                                       const FusedGroups& groups,
                                       const ExponentParameters& parameters,
                                       TansVectorEncoder* encoder, std::byte* plane,
                                       FusedEncodeOut* out) {
  const MantissaSplit split = parameters.split;
  const TokenRange range = parameters.range;
  const KeptTables<Tables> tables = prepared;
  const std::uint32_t drop = Float32Format::kMantissaBits - split.mantissa;
  ExponentQuantizer quantizer = {
      zero_lanes(),
      set_lanes(static_cast<int>(range.first)),
      set_lanes(static_cast<int>(range.last - range.first)),
      set_lanes(static_cast<int>((0xFFFF0000u >> split.lane_bits()) & 0x7FFFu)),
      make_rounding(drop > 0 ? drop : 1),
      static_cast<int>(drop)};
  HalfState low = load_half(encoder->lanes, 0);
  HalfState high = load_half(encoder->lanes, kHalfLanes);
  std::byte* words = out->words;
  std::uint32_t* outliers = out->outliers;
  for (std::uint32_t g = groups.groups; g-- > 0;) {
    quantizer.top = set_lanes(groups.scales[g] - static_cast<int>(range.first));
    for (std::size_t row = (std::size_t{g} + 1) * groups.group;
         row != std::size_t{g} * groups.group;) {
      row -= kMaxLanes;
      prefetch_row(values + row, kPrefetch);
      const std::size_t upper = row + kHalfLanes;
      const HalfTokens b = quantize_exponent_half<kRounds, kPlaneBytes>(
          values + upper, quantizer, plane + upper * kPlaneBytes, &outliers);
      words = encode_half(tables, b.tokens, b.lane_bits, high, words);
      const HalfTokens a = quantize_exponent_half<kRounds, kPlaneBytes>(
          values + row, quantizer, plane + row * kPlaneBytes, &outliers);
      words = encode_half(tables, a.tokens, a.lane_bits, low, words);
    }
  }
  store_half(low, 0, &encoder->lanes);
  store_half(high, kHalfLanes, &encoder->lanes);
  *out = {words, outliers};
}

template <bool kRounds, typename Tables>
void encode_exponent_as(const Tables& tables, const std::uint32_t* values,
                        const FusedGroups& groups, const ExponentParameters& parameters,
                        TansVectorEncoder* encoder, std::byte* plane, FusedEncodeOut* out) {
  switch (parameters.split.plane_bytes) {
    case 0:
      return encode_exponent_rows<kRounds, 0>(tables, values, groups, parameters, encoder, plane,
                                              out);
    case 1:
      return encode_exponent_rows<kRounds, 1>(tables, values, groups, parameters, encoder, plane,
                                              out);
    default:
      return encode_exponent_rows<kRounds, 2>(tables, values, groups, parameters, encoder, plane,
                                              out);
  }
}

template <typename Tables>
void encode_exponent_with(const Tables& tables, const std::uint32_t* values,
                          const FusedGroups& groups, const ExponentParameters& parameters,
                          TansVectorEncoder* encoder, std::byte* plane, FusedEncodeOut* out) {
  return parameters.rounds
             ? encode_exponent_as<true>(tables, values, groups, parameters, encoder, plane, out)
             : encode_exponent_as<false>(tables, values, groups, parameters, encoder, plane, out);
}

void encode_exponent(const std::uint32_t* values, const FusedGroups& groups,
                     const ExponentParameters& parameters, TansVectorEncoder* encoder,
                     std::byte* plane, FusedEncodeOut* out) {
  const TansVectorEncodeTable& table = encoder->table;
  if (encoder->is_prefix_code) {
    encode_exponent_with(load_prefix_tables(table), values, groups, parameters, encoder, plane,
                         out);
  } else {
    encode_exponent_with(load_encode_tables(table), values, groups, parameters, encoder, plane,
                         out);
  }
}

// ---- decoders ----

struct DecodeState {
  HalfState low, high;
  const std::byte* end;
};

HWY_INLINE DecodeState load_state(const TansDecoder& decoder, const TansVectorDecoder& vector) {
  return {load_half(vector.lanes, 0), load_half(vector.lanes, kHalfLanes), decoder.end};
}

HWY_INLINE void store_state(const DecodeState& state, TansDecoder* decoder,
                            TansVectorDecoder* vector) {
  store_half(state.low, 0, &vector->lanes);
  store_half(state.high, kHalfLanes, &vector->lanes);
  decoder->end = state.end;
}

// The words that a group takes at most are there, and 64 bytes behind the end can be read.
HWY_INLINE bool can_decode(const std::byte* end, std::uint32_t group, const TansDecoder& decoder,
                           const TansVectorDecoder& vector) {
  return end - decoder.begin >= static_cast<std::ptrdiff_t>(kWordBytes * group) &&
         vector.readable_end - end >= static_cast<std::ptrdiff_t>(kWordBytes * kHalfLanes);
}

// Puts 32 values; those marked as escapes come from the outliers.
template <bool kAdd>
HWY_INLINE void put_half(Lanes marks, WidePair v, OutlierCursor* outliers, std::uint32_t* values) {
  if (HWY_UNLIKELY(any_negative(marks))) {
    const std::uint64_t count = count_mask(negative(marks));
    if (outliers->left < count) {
      outliers->missing = true;
    } else {
      outliers->next = expand_wide(marks, outliers->next, &v);
      outliers->left -= count;
    }
  }
  if constexpr (kAdd) v = add_float(load_wide(values), v);
  store_wide(v, values);
}

// (token + 224) << 6 for tokens of numbers: exponent and first bit of |q| 2^-14 as the upper half
// of a float32; 0 for zero; the mark for escapes.
struct StepHighTable {
  alignas(64) std::array<std::uint16_t, kTokenCount> high;
};
constexpr StepHighTable make_step_high() {
  StepHighTable table{};
  for (std::uint32_t token = 1; token < kStepEscape; ++token) {
    table.high[token] = static_cast<std::uint16_t>((token + 224) << 6);
  }
  table.high[kStepEscape] = kTopBit;
  return table;
}
constexpr StepHighTable kStepHigh = make_step_high();

template <bool kAdd>
HWY_INLINE void put_step_half(const Table32& highs, DecodedHalf half, WideFloat scale,
                              OutlierCursor* outliers, std::uint32_t* values) {
  const Lanes marks = lookup32(highs, half.symbols);
  // Bit 15 stays the sign; for escapes, whose mark it is, all will be replaced.
  const Lanes high =
      or_and(marks, shift_right_signed<9>(half.lane_bits), set_lanes(kTopBit | 0x3F));
  const WidePair v = mul_float(widen(high, shift_left<7>(half.lane_bits)), scale);
  put_half<kAdd>(marks, v, outliers, values);
}

struct StepDecodeTables {
  DecodeTables coder;
  Table32 highs;
};

template <bool kAdd>
HWY_NOINLINE std::uint32_t decode_step_rows(const StepDecodeTables& prepared,
                                            const FusedGroups& groups, TansDecoder* decoder,
                                            TansVectorDecoder* vector, OutlierCursor* outliers,
                                            std::uint32_t* values) {
  const KeptTables<DecodeTables> tables = prepared.coder;
  const KeptTables<Table32> highs = prepared.highs;
  DecodeState state = load_state(*decoder, *vector);
  std::uint32_t g = 0;
  for (; g < groups.groups && can_decode(state.end, groups.group, *decoder, *vector); ++g) {
    const WideFloat scale = set_float(power_of_two(14 + groups.scales[g]));
    std::uint32_t* row = values + std::size_t{g} * groups.group;
    for (const std::uint32_t* const last = row + groups.group; row != last; row += kMaxLanes) {
      const RowStates states = look_up_states(tables, state.low, state.high);
      const DecodedHalf a = decode_half<0>(tables, states, state.low, &state.end);
      put_step_half<kAdd>(highs, a, scale, outliers, row);
      const DecodedHalf b = decode_half<1>(tables, states, state.high, &state.end);
      put_step_half<kAdd>(highs, b, scale, outliers, row + kHalfLanes);
    }
  }
  store_state(state, decoder, vector);
  return g;
}

std::uint32_t decode_step(const FusedGroups& groups, TansDecoder* decoder,
                          TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                          std::uint32_t* values) {
  const StepDecodeTables tables = {load_decode_tables(vector->table),
                                   load_table32(kStepHigh.high.data())};
  return add ? decode_step_rows<true>(tables, groups, decoder, vector, outliers, values)
             : decode_step_rows<false>(tables, groups, decoder, vector, outliers, values);
}

// By token: its place below the top as the upper half of a float32.
struct ExponentDownTable {
  alignas(64) std::array<std::uint16_t, kTokenCount> down;
};
constexpr ExponentDownTable make_exponent_down() {
  ExponentDownTable table{};
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    table.down[token] = static_cast<std::uint16_t>(token << 7);
  }
  return table;
}
constexpr ExponentDownTable kExponentDown = make_exponent_down();

template <bool kAdd, int kPlaneBytes>
HWY_INLINE void put_exponent_half(const Table32& highs, DecodedHalf half, const std::byte* plane,
                                  int shift, OutlierCursor* outliers, std::uint32_t* values) {
  const Lanes marks = lookup32(highs, half.symbols);
  const Lanes high =
      or_and(marks, shift_right_signed<8>(half.lane_bits), set_lanes(kTopBit | 0x7F));
  WidePair v = widen(high, shift_left<8>(half.lane_bits));
  if constexpr (kPlaneBytes > 0) {
    // Zeros have exponent field 0, numbers not: only these have a plane entry.
    v = or_where(v, Float32Format::kInfinity, load_shifted<kPlaneBytes>(plane, shift));
  }
  put_half<kAdd>(marks, v, outliers, values);
}

template <bool kAdd, int kPlaneBytes>
HWY_NOINLINE std::uint32_t decode_exponent_rows(const DecodeTables& prepared,
                                                const FusedGroups& groups, MantissaSplit split,
                                                const std::byte* plane, TansDecoder* decoder,
                                                TansVectorDecoder* vector, OutlierCursor* outliers,
                                                std::uint32_t* values) {
  const KeptTables<DecodeTables> tables = prepared;
  DecodeState state = load_state(*decoder, *vector);
  const Lanes down = load_lanes(kExponentDown.down.data());
  const LaneMask zero = one_lane(kExponentZero);
  const LaneMask escape = one_lane(kExponentEscape);
  const int shift = static_cast<int>(Float32Format::kMantissaBits - split.mantissa);
  std::uint32_t g = 0;
  for (; g < groups.groups && can_decode(state.end, groups.group, *decoder, *vector); ++g) {
    const Lanes numbers = clear(zero, sub(set_lanes(groups.scales[g] << 7), down));
    const Table32 highs = make_table32(select(escape, set_lanes(kTopBit), numbers));
    const std::size_t first = std::size_t{g} * groups.group;
    for (std::size_t row = first; row != first + groups.group; row += kMaxLanes) {
      const RowStates states = look_up_states(tables, state.low, state.high);
      const DecodedHalf a = decode_half<0>(tables, states, state.low, &state.end);
      put_exponent_half<kAdd, kPlaneBytes>(highs, a, plane + row * kPlaneBytes, shift, outliers,
                                           values + row);
      const std::size_t upper = row + kHalfLanes;
      const DecodedHalf b = decode_half<1>(tables, states, state.high, &state.end);
      put_exponent_half<kAdd, kPlaneBytes>(highs, b, plane + upper * kPlaneBytes, shift, outliers,
                                           values + upper);
    }
  }
  store_state(state, decoder, vector);
  return g;
}

template <bool kAdd>
std::uint32_t decode_exponent_as(const FusedGroups& groups, MantissaSplit split,
                                 const std::byte* plane, TansDecoder* decoder,
                                 TansVectorDecoder* vector, OutlierCursor* outliers,
                                 std::uint32_t* values) {
  const DecodeTables tables = load_decode_tables(vector->table);
  switch (split.plane_bytes) {
    case 0:
      return decode_exponent_rows<kAdd, 0>(tables, groups, split, plane, decoder, vector, outliers,
                                           values);
    case 1:
      return decode_exponent_rows<kAdd, 1>(tables, groups, split, plane, decoder, vector, outliers,
                                           values);
    default:
      return decode_exponent_rows<kAdd, 2>(tables, groups, split, plane, decoder, vector, outliers,
                                           values);
  }
}

std::uint32_t decode_exponent(const FusedGroups& groups, MantissaSplit split,
                              const std::byte* plane, TansDecoder* decoder,
                              TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                              std::uint32_t* values) {
  return add ? decode_exponent_as<true>(groups, split, plane, decoder, vector, outliers, values)
             : decode_exponent_as<false>(groups, split, plane, decoder, vector, outliers, values);
}

#else

void encode_step(const std::uint32_t*, const FusedGroups&, std::uint32_t, TansVectorEncoder*,
                 FusedEncodeOut*) {}
void encode_exponent(const std::uint32_t*, const FusedGroups&, const ExponentParameters&,
                     TansVectorEncoder*, std::byte*, FusedEncodeOut*) {}
std::uint32_t decode_step(const FusedGroups&, TansDecoder*, TansVectorDecoder*, OutlierCursor*,
                          bool, std::uint32_t*) {
  return 0;
}
std::uint32_t decode_exponent(const FusedGroups&, MantissaSplit, const std::byte*, TansDecoder*,
                              TansVectorDecoder*, OutlierCursor*, bool, std::uint32_t*) {
  return 0;
}

#endif  // GRADWIRE_HAVE_LANE_OPS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(has_fused);
HWY_EXPORT(encode_step);
HWY_EXPORT(encode_exponent);
HWY_EXPORT(decode_step);
HWY_EXPORT(decode_exponent);

}  // namespace

bool has_fused_groups() noexcept { return GRADWIRE_DISPATCH(has_fused)(); }

bool fused_step_scale(std::int32_t k) noexcept { return k >= kStepFastMin && k <= kStepFastMax; }

bool fused_exponent_scale(std::int32_t top, TokenRange range) noexcept {
  return top - 1 > static_cast<std::int32_t>(range.last) && top < Float32Format::kExponentMax;
}

bool fused_exponent_scale(std::int32_t top) noexcept {
  return top > static_cast<std::int32_t>(kExponentTokenMax) && top < Float32Format::kExponentMax;
}

void encode_step_groups(const std::uint32_t* values, FusedGroups groups, std::uint32_t q_max,
                        TansVectorEncoder* encoder, FusedEncodeOut* out) noexcept {
  GRADWIRE_DISPATCH(encode_step)(values, groups, q_max, encoder, out);
}

void encode_exponent_groups(const std::uint32_t* values, FusedGroups groups,
                            const ExponentParameters& parameters, TansVectorEncoder* encoder,
                            std::byte* plane, FusedEncodeOut* out) noexcept {
  GRADWIRE_DISPATCH(encode_exponent)(values, groups, parameters, encoder, plane, out);
}

std::uint32_t decode_step_groups(FusedGroups groups, TansDecoder* decoder,
                                 TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                                 std::uint32_t* values) noexcept {
  return GRADWIRE_DISPATCH(decode_step)(groups, decoder, vector, outliers, add, values);
}

std::uint32_t decode_exponent_groups(FusedGroups groups, MantissaSplit split,
                                     const std::byte* plane, TansDecoder* decoder,
                                     TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                                     std::uint32_t* values) noexcept {
  return GRADWIRE_DISPATCH(decode_exponent)(groups, split, plane, decoder, vector, outliers, add,
                                            values);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
