#include "entropy/tans_decode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "entropy/tans_decode_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/lane_ops-inl.h"
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

bool has_decoder() { return GRADWIRE_HAVE_LANE_OPS; }

#if GRADWIRE_HAVE_LANE_OPS

// 32 lanes.
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

struct DecodeTables {
  Table128 symbols, next;
  Table32 lane_bits, masks;
};

// The 32 values of half a row. Loads 64 bytes from below `end` on, of which it takes the words
// before `end`; returns the new end.
HWY_INLINE const std::byte* decode_half(const DecodeTables& tables, HalfState& half,
                                        const std::byte* end, std::uint8_t* tokens,
                                        std::uint16_t* lane_bits) {
  const Lanes top = funnel_left(half.n0, half.n1, half.position);
  const Lanes symbol = lookup128(tables.symbols, half.state);
  const Lanes code_bits = shift_right<5>(symbol);
  half.state = add(lookup128(tables.next, half.state), funnel_left(zero_lanes(), top, code_bits));
  const Lanes position = add(half.position, add(code_bits, lookup32(tables.lane_bits, symbol)));
  const LaneMask refill = test(position, set_lanes(16));
  half.position = and_(position, set_lanes(15));
  half.n0 = select(refill, half.n1, half.n0);
  half.n1 = select(refill, half.n2, half.n1);
  end -= kWordBytes * count_mask(refill);
  half.n2 = expand_load(refill, half.n2, end);
  deinterleave_bytes(symbol, tokens);
  deinterleave_words(and_(shift_left(top, code_bits), lookup32(tables.masks, symbol)), lane_bits);
  return end;
}

// Decodes rows as long as there are 64 words before *words_end (what a row takes at most) and 64
// readable bytes behind it. Returns the number of values.
std::uint32_t decode_rows(TansVectorDecoder* vector, const std::byte* begin,
                          const std::byte** words_end, std::uint8_t* tokens,
                          std::uint16_t* lane_bits, std::uint32_t count) {
  constexpr std::ptrdiff_t kRowBytes = kWordBytes * kMaxLanes;
  constexpr std::ptrdiff_t kLoadBytes = kWordBytes * kHalfLanes;
  const TansVectorDecodeTable& table = vector->table;
  const DecodeTables tables = {
      load_table128(table.symbols.data()), load_table128(table.next.data()),
      load_table32(table.lane_bits.data()), load_table32(table.masks.data())};
  const std::byte* end = *words_end;
  if (vector->readable_end - end < kLoadBytes) return 0;
  HalfState low = load_half(vector->lanes, 0);
  HalfState high = load_half(vector->lanes, kHalfLanes);
  std::uint32_t row = 0;
  for (; row < count && end - begin >= kRowBytes; row += kMaxLanes) {
    end = decode_half(tables, low, end, tokens + row, lane_bits + row);
    end = decode_half(tables, high, end, tokens + row + kHalfLanes, lane_bits + row + kHalfLanes);
  }
  store_half(low, 0, &vector->lanes);
  store_half(high, kHalfLanes, &vector->lanes);
  *words_end = end;
  return row;
}

#else

std::uint32_t decode_rows(TansVectorDecoder*, const std::byte*, const std::byte**, std::uint8_t*,
                          std::uint16_t*, std::uint32_t) {
  return 0;
}

#endif  // GRADWIRE_HAVE_LANE_OPS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(has_decoder);
HWY_EXPORT(decode_rows);

void lanes_to_vector(const TansDecoder& decoder, TansVectorLanes* lanes) noexcept {
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    const TansDecodeLane& lane = decoder.state[i];
    const std::uint64_t window = lane.window >> (16 + lane.position);
    lanes->n0[i] = static_cast<std::uint16_t>(window >> 32);
    lanes->n1[i] = static_cast<std::uint16_t>(window >> 16);
    lanes->n2[i] = static_cast<std::uint16_t>(window);
    lanes->position[i] = static_cast<std::uint16_t>(lane.position);
    lanes->state[i] = static_cast<std::uint16_t>(lane.state);
  }
}

void lanes_from_vector(const TansVectorLanes& lanes, TansDecoder* decoder) noexcept {
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    TansDecodeLane& lane = decoder->state[i];
    const std::uint64_t window =
        (std::uint64_t{lanes.n0[i]} << 32) | (std::uint64_t{lanes.n1[i]} << 16) | lanes.n2[i];
    lane.position = lanes.position[i];
    lane.window = window << (16 + lane.position);
    lane.state = lanes.state[i];
  }
}

}  // namespace

bool has_vector_decoder() noexcept { return GRADWIRE_DISPATCH(has_decoder)(); }

void start_vector_decoder(const TansDecodeTable& table, const TansDecoder& decoder,
                          const std::byte* readable_end, TansVectorDecoder* vector) noexcept {
  vector->table.lane_bits.fill(0);
  vector->table.masks.fill(0);
  for (std::uint32_t state = 0; state < kTansStates; ++state) {
    const TansDecodeEntry& entry = table.states[state];
    vector->table.symbols[state] = static_cast<std::uint8_t>(entry.token | (entry.code_bits << 5));
    vector->table.next[state] = entry.next;
    vector->table.lane_bits[entry.token] =
        static_cast<std::uint16_t>(entry.value_bits - entry.code_bits);
    vector->table.masks[entry.token] = entry.lane_bits_mask;
  }
  vector->readable_end = readable_end;
  lanes_to_vector(decoder, &vector->lanes);
}

void decode_group_simd(const TansDecodeTable& table, TansDecoder* decoder,
                       TansVectorDecoder* vector, std::uint8_t* tokens, std::uint16_t* lane_bits,
                       std::uint32_t count) noexcept {
  const std::uint32_t rows = count / kMaxLanes * kMaxLanes;
  const std::uint32_t done = GRADWIRE_DISPATCH(decode_rows)(vector, decoder->begin, &decoder->end,
                                                            tokens, lane_bits, rows);
  if (done == count) return;
  // A short row, or one that the plain decoder has to watch.
  lanes_from_vector(vector->lanes, decoder);
  decode_group_ref(table, decoder, tokens + done, lane_bits + done, count - done);
  lanes_to_vector(*decoder, &vector->lanes);
}

void finish_vector_decoder(const TansVectorDecoder& vector, TansDecoder* decoder) noexcept {
  lanes_from_vector(vector.lanes, decoder);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
