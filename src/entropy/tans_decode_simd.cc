#include "entropy/tans_decode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "entropy/tans_decode_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/lane_ops-inl.h"
#include "core/simd_dispatch.h"
#include "entropy/tans_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

bool has_decoder() { return GRADWIRE_HAVE_LANE_OPS; }

#if GRADWIRE_HAVE_LANE_OPS

// Decodes rows as long as there are 64 words before *words_end (what a row takes at most) and 64
// readable bytes behind it. Returns the number of values.
std::uint32_t decode_rows(TansVectorDecoder* vector, const std::byte* begin,
                          const std::byte** words_end, std::uint8_t* tokens,
                          std::uint16_t* lane_bits, std::uint32_t count) {
  constexpr std::ptrdiff_t kRowBytes = kWordBytes * kMaxLanes;
  constexpr std::ptrdiff_t kLoadBytes = kWordBytes * kHalfLanes;
  const DecodeTables tables = load_decode_tables(vector->table);
  const std::byte* end = *words_end;
  if (vector->readable_end - end < kLoadBytes) return 0;
  HalfState low = load_half(vector->lanes, 0);
  HalfState high = load_half(vector->lanes, kHalfLanes);
  std::uint32_t row = 0;
  for (; row < count && end - begin >= kRowBytes; row += kMaxLanes) {
    const RowStates states = look_up_states(tables, low, high);
    const DecodedHalf first = decode_half<0>(tables, states, low, &end);
    deinterleave_bytes(first.symbols, tokens + row);
    deinterleave_words(first.lane_bits, lane_bits + row);
    const DecodedHalf second = decode_half<1>(tables, states, high, &end);
    deinterleave_bytes(second.symbols, tokens + row + kHalfLanes);
    deinterleave_words(second.lane_bits, lane_bits + row + kHalfLanes);
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
