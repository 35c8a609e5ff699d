#include "entropy/tans_encode.h"

#include "core/endian.h"

namespace gradwire::internal {
namespace {

// Undoes what the decoder does for one value: first its refill, then the reading of its bits.
inline std::byte* encode_value(const TansEncodeTable& table, std::uint8_t token,
                               std::uint16_t lane_bits, TansEncodeLane* lane,
                               std::byte* words) noexcept {
  const TansEncodeEntry& entry = table.tokens[token];
  const std::uint32_t code_bits = (lane->state + entry.delta) >> (kTansStateShift + 8);
  // The state above the value's 16 lane bits; the shift drops lane bits that are zero, leaves the
  // value's bits (code, then lane bits) at the top of the lower 16, and X >> nb above them.
  const std::uint32_t shifted = (lane->state | lane_bits) >> code_bits;
  lane->state = table.states[static_cast<std::size_t>(
      entry.start + static_cast<std::int32_t>(shifted >> kTansStateShift))];

  // Above 32 the position would be negative: the decoder takes a word after this value.
  std::uint32_t shift = lane->shift + code_bits + entry.lane_bits;  // 17 to 48
  const std::uint32_t refill = (shift + 31) >> 6;                   // 0 or 1
  store_le(words, static_cast<std::uint16_t>(lane->window));
  const std::uint64_t window = refill != 0 ? lane->window >> 16 : lane->window;
  shift -= 16 * refill;
  lane->shift = shift;
  lane->window = window | (static_cast<std::uint64_t>(shifted & 0xFFFF) << shift);
  return words + kWordBytes * refill;
}

// A row of kLanes values: halves from the last to the first, in each the lanes upwards.
template <std::uint32_t kLanes>
std::byte* encode_row(const TansEncodeTable& table, const std::uint8_t* tokens,
                      const std::uint16_t* lane_bits, TansEncodeLanes* state,
                      std::byte* words) noexcept {
  if constexpr (kLanes == 1) {
    return encode_value(table, tokens[0], lane_bits[0], &(*state)[0], words);
  } else {
    constexpr std::uint32_t kHalf = kLanes < kHalfLanes ? kLanes : kHalfLanes;
    for (std::uint32_t first = kLanes; first > 0;) {
      first -= kHalf;
      TansEncodeLane* lane = state->data() + first;
      const std::uint8_t* t = tokens + first;
      const std::uint16_t* b = lane_bits + first;
      for (std::uint32_t i = 0; i < kHalf / 2; ++i) {
        words = encode_value(table, t[i], b[i], &lane[2 * i], words);
        words = encode_value(table, t[i + kHalf / 2], b[i + kHalf / 2], &lane[2 * i + 1], words);
      }
    }
    return words;
  }
}

// A row of fewer values: lanes without a value do nothing.
std::byte* encode_short_row(const TansEncodeTable& table, std::uint32_t lanes,
                            const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                            std::uint32_t count, TansEncodeLanes* state,
                            std::byte* words) noexcept {
  const std::uint32_t half = lanes < kHalfLanes ? lanes : kHalfLanes;
  for (std::uint32_t first = lanes; first > 0;) {
    first -= half;
    for (std::uint32_t lane = first; lane < first + half; ++lane) {
      const std::uint32_t value = lane_value(lanes, lane);
      if (value >= count) continue;
      words = encode_value(table, tokens[value], lane_bits[value], &(*state)[lane], words);
    }
  }
  return words;
}

template <std::uint32_t kLanes>
std::byte* encode_group(const TansEncodeTable& table, const std::uint8_t* tokens,
                        const std::uint16_t* lane_bits, std::uint32_t count, TansEncodeLanes* state,
                        std::byte* words) noexcept {
  std::uint32_t row = count / kLanes * kLanes;
  if (row < count) {
    words =
        encode_short_row(table, kLanes, tokens + row, lane_bits + row, count - row, state, words);
  }
  while (row > 0) {
    row -= kLanes;
    words = encode_row<kLanes>(table, tokens + row, lane_bits + row, state, words);
  }
  return words;
}

}  // namespace

std::byte* encode_group_ref(const TansEncodeTable& table, std::uint32_t lanes,
                            const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                            std::uint32_t count, TansEncodeLanes* state, std::byte* words) {
  switch (lanes) {
    case 64:
      return encode_group<64>(table, tokens, lane_bits, count, state, words);
    case 32:
      return encode_group<32>(table, tokens, lane_bits, count, state, words);
    case 16:
      return encode_group<16>(table, tokens, lane_bits, count, state, words);
    default:
      return encode_group<1>(table, tokens, lane_bits, count, state, words);
  }
}

void write_lane_states(const TansEncodeLanes& state, std::uint32_t lanes, std::byte* out) noexcept {
  std::byte* small = out + 3 * kWordBytes * lanes;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t window = state[lane].window;
    for (std::uint32_t word = 0; word < 3; ++word) {
      store_le(out + kWordBytes * (word * lanes + lane),
               static_cast<std::uint16_t>(window >> (32 - 16 * word)));
    }
    const std::uint32_t number = (state[lane].state >> kTansStateShift) - kTansStates;
    store_le(small + lane, static_cast<std::uint8_t>(number));
    store_le(small + lanes + lane, static_cast<std::uint8_t>(32 - state[lane].shift));
  }
}

}  // namespace gradwire::internal
