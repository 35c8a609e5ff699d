// One half of a row, 32 lanes, through the coder in vector registers: what the coder of stored
// tokens and the kernels that quantize and code at once share. Only where GRADWIRE_HAVE_LANE_OPS.
// Here for AVX-512 with VBMI2; other vectors take entropy/tans_rows_vectors-inl.h.
#if defined(GRADWIRE_ENTROPY_TANS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_ENTROPY_TANS_ROWS_INL_H_
#undef GRADWIRE_ENTROPY_TANS_ROWS_INL_H_
#else
#define GRADWIRE_ENTROPY_TANS_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/lane_ops-inl.h"
#include "entropy/tans_decode_simd.h"
#include "entropy/tans_encode_simd.h"
#include "entropy/tans_rows_vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

// Tables for a loop over rows: in registers.
template <typename Tables>
using KeptTables = Tables;

struct HalfState {
  Lanes n0, n1, n2, position, state;
};

HWY_INLINE HalfState load_half(const TansVectorLanes& lanes, std::uint32_t at) {
  return {load_lanes(lanes.n0.data() + at), load_lanes(lanes.n1.data() + at),
          load_lanes(lanes.n2.data() + at), load_lanes(lanes.position.data() + at),
          load_lanes(lanes.state.data() + at)};
}

HWY_INLINE void store_half(const HalfState& half, std::uint32_t at, TansVectorLanes* lanes) {
  store_lanes(half.n0, lanes->n0.data() + at);
  store_lanes(half.n1, lanes->n1.data() + at);
  store_lanes(half.n2, lanes->n2.data() + at);
  store_lanes(half.position, lanes->position.data() + at);
  store_lanes(half.state, lanes->state.data() + at);
}

struct EncodeTables {
  Table32 delta, start, lane_bits;
  Table128 states;
};

HWY_INLINE EncodeTables load_encode_tables(const TansVectorEncodeTable& table) {
  return {load_table32(table.delta.data()), load_table32(table.start.data()),
          load_table32(table.lane_bits.data()), load_table128(table.states.data())};
}

// Of a prefix code: the code bits follow from the token, and the states are numbers in a row.
struct PrefixEncodeTables {
  Table32 code_bits, start, value_bits;
};

HWY_INLINE PrefixEncodeTables load_prefix_tables(const TansVectorEncodeTable& table) {
  const Lanes code_bits = shift_right<8>(load_lanes(table.delta.data()));
  return {make_table32(code_bits),
          make_table32(add(load_lanes(table.start.data()), set_lanes(kTansStates))),
          make_table32(add(code_bits, load_lanes(table.lane_bits.data())))};
}

// Undoes refill and reading of values of `value_bits` bits, `value` at the top of 16; the words
// come out in lane order.
HWY_INLINE std::byte* put_values(Lanes value, Lanes value_bits, HalfState& half, std::byte* words) {
  const Lanes next = sub(half.position, value_bits);
  const LaneMask refill = negative(next);
  half.position = and_(next, set_lanes(15));
  words = compress_store(half.n2, refill, words);
  half.n2 = select(refill, half.n1, half.n2);
  // Where the lane refills its window moves down by a word; then the value's 16 bits go in at the
  // position, across N0 and N1.
  half.n1 = or_(select(refill, half.n0, half.n1), funnel_right(value, zero_lanes(), half.position));
  half.n0 = or_(clear(refill, half.n0), shift_right(value, half.position));
  return words;
}

// The 32 values, as encode_value() of the plain encoder does one. Of the tokens only the low five
// bits count.
HWY_INLINE std::byte* encode_half(const EncodeTables& tables, Lanes tokens, Lanes lane_bits,
                                  HalfState& half, std::byte* words) {
  const Lanes code_bits = shift_right<8>(add(half.state, lookup32(tables.delta, tokens)));
  const Lanes value = funnel_right(half.state, lane_bits, code_bits);
  const Lanes index = add(shift_right(half.state, code_bits), lookup32(tables.start, tokens));
  half.state = lookup128(tables.states, index);
  return put_values(value, add(code_bits, lookup32(tables.lane_bits, tokens)), half, words);
}

HWY_INLINE std::byte* encode_half(const PrefixEncodeTables& tables, Lanes tokens, Lanes lane_bits,
                                  HalfState& half, std::byte* words) {
  const Lanes code_bits = lookup32(tables.code_bits, tokens);
  const Lanes value = funnel_right(half.state, lane_bits, code_bits);
  half.state = add(shift_right(half.state, code_bits), lookup32(tables.start, tokens));
  return put_values(value, lookup32(tables.value_bits, tokens), half, words);
}

struct DecodeTables {
  Table128 symbols, next;
  Table32 lane_bits, masks;
};

HWY_INLINE DecodeTables load_decode_tables(const TansVectorDecodeTable& table) {
  return {load_table128(table.symbols.data()), load_table128(table.next.data()),
          load_table32(table.lane_bits.data()), load_table32(table.masks.data())};
}

struct DecodedHalf {
  Lanes symbols;    // tokens in the low five bits
  Lanes lane_bits;  // at the top of 16, zeros below
};

// A look-up takes one instruction: each half makes its own.
struct RowStates {};
HWY_INLINE RowStates look_up_states(const DecodeTables&, const HalfState&, const HalfState&) {
  return {};
}

// The 32 values. Loads 64 bytes from below `*end` on, of which it takes the words before `*end`.
template <int kHalf>
HWY_INLINE DecodedHalf decode_half(const DecodeTables& tables, RowStates, HalfState& half,
                                   const std::byte** end) {
  const Lanes top = funnel_left(half.n0, half.n1, half.position);
  const Lanes symbol = lookup128(tables.symbols, half.state);
  const Lanes code_bits = shift_right<5>(symbol);
  half.state = add(lookup128(tables.next, half.state), funnel_left(zero_lanes(), top, code_bits));
  const Lanes position = add(half.position, add(code_bits, lookup32(tables.lane_bits, symbol)));
  const LaneMask refill = test(position, set_lanes(16));
  half.position = and_(position, set_lanes(15));
  half.n0 = select(refill, half.n1, half.n0);
  half.n1 = select(refill, half.n2, half.n1);
  *end -= kWordBytes * count_mask(refill);
  half.n2 = expand_load(refill, half.n2, *end);
  return {symbol, and_(shift_left(top, code_bits), lookup32(tables.masks, symbol))};
}

#endif  // HWY_TARGET == HWY_AVX3_DL

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
