// entropy/tans_rows-inl.h for vectors of 16 or 32 bytes: the same steps with products for shifts.
// Positions and states are bytes; 2^n comes from a look-up. Only where GRADWIRE_LANE_VECTORS.
#if defined(GRADWIRE_ENTROPY_TANS_ROWS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_ENTROPY_TANS_ROWS_VECTORS_INL_H_
#undef GRADWIRE_ENTROPY_TANS_ROWS_VECTORS_INL_H_
#else
#define GRADWIRE_ENTROPY_TANS_ROWS_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/lane_bytes-inl.h"
#include "core/lane_words-inl.h"
#include "entropy/tans_decode_simd.h"
#include "entropy/tans_encode_simd.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if GRADWIRE_LANE_VECTORS

// Tables for a loop over rows. There are more of them than registers: they stay where they are in
// memory. (As values of the loop's function they would be loaded, stored on the stack and loaded
// again. So that function takes them by reference and must not be inlined.)
template <typename Tables>
using KeptTables = const Tables&;

struct HalfState {
  Lanes n0, n1, n2;
  ByteLanes position, state;
};

HWY_INLINE HalfState load_half(const TansVectorLanes& lanes, std::uint32_t at) {
  return {load_lanes(lanes.n0.data() + at), load_lanes(lanes.n1.data() + at),
          load_lanes(lanes.n2.data() + at), narrow_words(load_lanes(lanes.position.data() + at)),
          narrow_words(load_lanes(lanes.state.data() + at))};
}

HWY_INLINE void store_half(const HalfState& half, std::uint32_t at, TansVectorLanes* lanes) {
  store_lanes(half.n0, lanes->n0.data() + at);
  store_lanes(half.n1, lanes->n1.data() + at);
  store_lanes(half.n2, lanes->n2.data() + at);
  store_lanes(widen_bytes(half.position), lanes->position.data() + at);
  store_lanes(widen_bytes(half.state), lanes->state.data() + at);
}

// Bytes of f(n) for n from 0 to 15.
struct ByteFunction {
  alignas(16) std::uint8_t low[16];
  alignas(16) std::uint8_t high[16];
};
template <typename Function>
constexpr ByteFunction make_function(Function f) {
  ByteFunction table{};
  for (std::uint32_t n = 0; n < 16; ++n) {
    table.low[n] = static_cast<std::uint8_t>(f(n) & 0xFF);
    table.high[n] = static_cast<std::uint8_t>(f(n) >> 8 & 0xFF);
  }
  return table;
}
// 2^n, the factor of shifts to the left by n and, taking the high half, to the right by 16 - n.
constexpr ByteFunction kUp = make_function([](std::uint32_t n) { return 1u << n; });
// 2^(16 - n), the other way round; 0 for n = 0, whose 2^16 is no 16-bit factor.
constexpr ByteFunction kDown = make_function([](std::uint32_t n) { return 0x10000u >> n; });
// The n + 1 highest of 16 bits.
constexpr ByteFunction kTopBits =
    make_function([](std::uint32_t n) { return 0xFFFF0000u >> (n + 1); });

HWY_INLINE ByteLanes low_bytes(const ByteFunction& f, const ByteLanes& n) {
  return lookup(load_byte_table<1>(f.low), n);
}
HWY_INLINE ByteLanes high_bytes(const ByteFunction& f, const ByteLanes& n) {
  return lookup(load_byte_table<1>(f.high), n);
}
// f(n), or 0 where bit 7 of n is set.
HWY_INLINE Lanes words_of(const ByteFunction& f, const ByteLanes& n) {
  return join(low_bytes(f, n), high_bytes(f, n));
}

// Code bits nb = (X + delta) >> 8 of a state X from 128 to 255. delta = (mb << 8) - (f << mb) with
// f << mb from 129 to 256 (tans_table.h); its lower byte is 256 - (f << mb), its upper one mb - 1.
// So nb is the upper byte, plus one where X > (f << mb) - 1 = 255 - lower byte. Both sides have
// bit 7 set: comparing them as signed bytes gives the same. (Tokens without frequency have delta 0:
// nb = 0, here as there.)
struct EncodeTables {
  ByteTable<2> delta_high, last_short, start, lane_bits;
  ByteTable<8> states;
};

HWY_INLINE EncodeTables load_encode_tables(const TansVectorEncodeTable& table) {
  const Lanes delta = load_lanes(table.delta.data());
  return {make_byte_table(shift_right<8>(delta)), low_bytes_table(sub(set_lanes(255), delta)),
          low_bytes_table(load_lanes(table.start.data())),
          low_bytes_table(load_lanes(table.lane_bits.data())),
          load_byte_table<8>(table.states.data())};
}

// Of a prefix code: the code bits, 1 to 7, follow from the token, and the states are numbers in a
// row.
struct PrefixEncodeTables {
  ByteTable<2> code_bits, start, value_bits;
};

HWY_INLINE PrefixEncodeTables load_prefix_tables(const TansVectorEncodeTable& table) {
  const Lanes code_bits = shift_right<8>(load_lanes(table.delta.data()));
  return {low_bytes_table(code_bits),
          low_bytes_table(add(load_lanes(table.start.data()), set_lanes(kTansStates))),
          low_bytes_table(add(code_bits, load_lanes(table.lane_bits.data())))};
}

// Undoes refill and reading of values of `value_bits` bits, `value` at the top of 16; the words
// come out in lane order.
HWY_INLINE std::byte* put_values(const Lanes& value, const ByteLanes& value_bits, HalfState& half,
                                 std::byte* words) {
  const ByteLanes zero = set_bytes(0);
  // Below 0 where the lane refills.
  const ByteLanes next = sub(half.position, value_bits);
  const ByteMask refill = greater_signed(zero, next);
  half.position = and_(next, set_bytes(15));
  words = compress_store(half.n2, refill, words);
  // There its window moves down by a word; then the value's 16 bits go in at the position, across
  // N0 and N1. At position 0 N0 takes all of them, and N1 the product 0.
  const LaneMask moves = widen_mask(refill);
  half.n2 = select(moves, half.n1, half.n2);
  const Lanes place = words_of(kDown, half.position);
  const LaneMask at_top = widen_mask(equal(half.position, zero));
  half.n1 = or_(select(moves, half.n0, half.n1), mul_low(value, place));
  half.n0 = or_(clear(moves, half.n0), select(at_top, value, mul_high(value, place)));
  return words;
}

// The 32 values, as encode_value() of the plain encoder does one. Of the tokens only the low five
// bits count.
HWY_INLINE std::byte* encode_half(const EncodeTables& tables, const Lanes& tokens,
                                  const Lanes& lane_bits, HalfState& half, std::byte* words) {
  const ByteLanes zero = set_bytes(0);
  const ByteLanes token = narrow_words(and_(tokens, set_lanes(31)));
  const ByteMask takes_more = greater_signed(half.state, lookup(tables.last_short, token));
  const ByteLanes code_bits = add_one_where(takes_more, lookup(tables.delta_high, token));
  // 2^(16 - nb) for nb from 1 to 7: only upper bytes. For nb = 0 the products are 0 and the lane
  // bits are the whole value, the state the whole state.
  const ByteMask no_code = equal(code_bits, zero);
  const Lanes down = join(zero, high_bytes(kDown, code_bits));
  const Lanes state = widen_bytes(half.state);
  const Lanes value =
      select(widen_mask(no_code), lane_bits, or_(mul_low(state, down), mul_high(lane_bits, down)));
  const ByteLanes shifted = select(no_code, half.state, narrow_words(mul_high(state, down)));
  const ByteLanes index = and_(add(shifted, lookup(tables.start, token)), set_bytes(127));
  half.state = lookup(tables.states, index);
  return put_values(value, add(code_bits, lookup(tables.lane_bits, token)), half, words);
}

HWY_INLINE std::byte* encode_half(const PrefixEncodeTables& tables, const Lanes& tokens,
                                  const Lanes& lane_bits, HalfState& half, std::byte* words) {
  const ByteLanes token = narrow_words(and_(tokens, set_lanes(31)));
  const ByteLanes code_bits = lookup(tables.code_bits, token);
  const Lanes down = join(set_bytes(0), high_bytes(kDown, code_bits));  // 2^(16 - nb)
  const Lanes state = widen_bytes(half.state);
  const Lanes value = or_(mul_low(state, down), mul_high(lane_bits, down));
  half.state = add(narrow_words(mul_high(state, down)), lookup(tables.start, token));
  return put_values(value, lookup(tables.value_bits, token), half, words);
}

struct DecodeTables {
  ByteTable<8> symbols, next;
  ByteTable<2> lane_bits;
};

HWY_INLINE DecodeTables load_decode_tables(const TansVectorDecodeTable& table) {
  return {load_byte_table<8>(table.symbols.data()), load_byte_table<8>(table.next.data()),
          low_bytes_table(load_lanes(table.lane_bits.data()))};
}

// What the tables of states give for the states of a row: both halves at once, so that each piece
// of a table is loaded once.
struct RowStates {
  ByteLanesPair symbols, next;
};
HWY_INLINE RowStates look_up_states(const DecodeTables& tables, const HalfState& low,
                                    const HalfState& high) {
  const ByteLanesPair states = {{low.state, high.state}};
  return {lookup(tables.symbols, states), lookup(tables.next, states)};
}

struct DecodedHalf {
  ByteLanes symbols;  // tokens
  Lanes lane_bits;    // at the top of 16, zeros below
};

// The 32 values. Loads up to 16 bytes from the words' new `*end` on, and nothing before it.
template <int kHalf>
HWY_INLINE DecodedHalf decode_half(const DecodeTables& tables, const RowStates& states,
                                   HalfState& half, const std::byte** end) {
  const Lanes at = words_of(kUp, half.position);
  const Lanes top = or_(mul_low(half.n0, at), mul_high(half.n1, at));
  const ByteLanes symbol = states.symbols.of[kHalf];
  const ByteLanes code_bits = upper_three_bits(symbol);
  const Lanes up = widen_bytes(low_bytes(kUp, code_bits));
  half.state = add(states.next.of[kHalf], narrow_words(mul_high(top, up)));
  const ByteLanes token = and_(symbol, set_bytes(31));
  const ByteLanes lane_bits = lookup(tables.lane_bits, token);
  const ByteLanes position = add(half.position, add(code_bits, lane_bits));
  const ByteMask refill = greater_signed(position, set_bytes(15));
  half.position = and_(position, set_bytes(15));
  const LaneMask moves = widen_mask(refill);
  half.n0 = select(moves, half.n1, half.n0);
  half.n1 = select(moves, half.n2, half.n1);
  half.n2 = select(moves, expand_load_down(refill, end), half.n2);
  // No lane bits: -1 has bit 7 set, the mask is 0.
  const Lanes mask = words_of(kTopBits, sub(lane_bits, set_bytes(1)));
  return {token, and_(mul_low(top, up), mask)};
}

#endif  // GRADWIRE_LANE_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
