#include "entropy/tans_decode.h"

#include "core/endian.h"

namespace gradwire::internal {
namespace {

struct Output {
  std::uint8_t* tokens;
  std::uint16_t* lane_bits;
};

// Reads a value's code and lane bits; the caller refills if the position has reached 16.
inline void decode_value(const TansDecodeTable& table, TansDecodeLane* lane, std::uint32_t index,
                         const Output& out) noexcept {
  const TansDecodeEntry& entry = table.states[lane->state];
  const std::uint32_t top = static_cast<std::uint32_t>(lane->window >> 48);
  out.tokens[index] = entry.token;
  out.lane_bits[index] =
      static_cast<std::uint16_t>((top << entry.code_bits) & entry.lane_bits_mask);
  lane->state = entry.next + (top >> (16 - entry.code_bits));
  lane->window <<= entry.value_bits;
  lane->position += entry.value_bits;
}

// One value of a full row. There must be a word at `end`, whether it is taken or not.
// With position >= 16, 48 - position bits are left, so that the new word's lowest bit stands at
// bit 64 - (48 - position) - 16 = position.
inline const std::byte* decode_and_refill(const TansDecodeTable& table, TansDecodeLane* lane,
                                          std::uint32_t index, const Output& out,
                                          const std::byte* end) noexcept {
  decode_value(table, lane, index, out);
  const std::uint32_t refill = lane->position >> 4;  // 0 or 1
  const std::uint64_t word = load_le<std::uint16_t>(end - kWordBytes) & (0u - refill);
  lane->window |= word << lane->position;
  lane->position &= 15;
  return end - kWordBytes * refill;
}

// A row of kLanes values, with at least kLanes words before `end`: halves upwards, in each the
// lanes downwards, as the first of the lanes that refill takes the first of their words.
template <std::uint32_t kLanes>
const std::byte* decode_row(const TansDecodeTable& table, TansDecodeLane* lanes, const Output& out,
                            const std::byte* end) noexcept {
  constexpr std::uint32_t kHalf = kLanes < kHalfLanes ? kLanes : kHalfLanes;
  for (std::uint32_t first = 0; first < kLanes; first += kHalf) {
    for (std::uint32_t i = kHalf / 2; i-- > 0;) {
      TansDecodeLane* pair = lanes + first + 2 * i;
      end = decode_and_refill(table, pair + 1, first + i + kHalf / 2, out, end);
      end = decode_and_refill(table, pair, first + i, out, end);
    }
  }
  return end;
}

// Any row, any number of words.
void decode_bounded_row(const TansDecodeTable& table, TansDecoder* decoder, const Output& out,
                        std::uint32_t count) noexcept {
  const std::uint32_t lanes = decoder->lanes;
  const std::uint32_t half = lanes < kHalfLanes ? lanes : kHalfLanes;
  for (std::uint32_t first = 0; first < lanes; first += half) {
    for (std::uint32_t number = first + half; number-- > first;) {
      const std::uint32_t value = lane_value(lanes, number);
      if (value >= count) continue;
      TansDecodeLane* lane = &decoder->state[number];
      decode_value(table, lane, value, out);
      if (lane->position < 16) continue;
      if (decoder->end == decoder->begin) {
        decoder->out_of_words = true;
      } else {
        decoder->end -= kWordBytes;
        const std::uint64_t word = load_le<std::uint16_t>(decoder->end);
        lane->window |= word << lane->position;
      }
      lane->position -= 16;
    }
  }
}

template <std::uint32_t kLanes>
void decode_group(const TansDecodeTable& table, TansDecoder* decoder, std::uint8_t* tokens,
                  std::uint16_t* lane_bits, std::uint32_t count) noexcept {
  std::uint32_t row = 0;
  for (; row + kLanes <= count; row += kLanes) {
    const Output out{tokens + row, lane_bits + row};
    if (decoder->end - decoder->begin >= static_cast<std::ptrdiff_t>(kWordBytes * kLanes)) {
      if constexpr (kLanes == 1) {
        decoder->end = decode_and_refill(table, &decoder->state[0], 0, out, decoder->end);
      } else {
        decoder->end = decode_row<kLanes>(table, decoder->state.data(), out, decoder->end);
      }
    } else {
      decode_bounded_row(table, decoder, out, kLanes);
    }
  }
  if (row < count) {
    decode_bounded_row(table, decoder, Output{tokens + row, lane_bits + row}, count - row);
  }
}

}  // namespace

const char* start_decoder(std::span<const std::byte> lane_states, std::uint32_t lanes,
                          std::span<const std::byte> words, TansDecoder* decoder) noexcept {
  decoder->lanes = lanes;
  decoder->begin = words.data();
  decoder->end = words.data() + words.size();
  decoder->out_of_words = false;
  const std::byte* bytes = lane_states.data();
  const std::byte* small = bytes + 3 * kWordBytes * lanes;
  for (std::uint32_t number = 0; number < lanes; ++number) {
    TansDecodeLane& lane = decoder->state[number];
    lane.state = load_le<std::uint8_t>(small + number);
    lane.position = load_le<std::uint8_t>(small + lanes + number);
    if (lane.state >= kTansStates) return "a lane state is above 127";
    if (lane.position > 15) return "a lane position is above 15";
    std::uint64_t window = 0;
    for (std::uint32_t word = 0; word < 3; ++word) {
      window =
          (window << 16) | load_le<std::uint16_t>(bytes + kWordBytes * (word * lanes + number));
    }
    lane.window = window << (16 + lane.position);
  }
  return nullptr;
}

void decode_group_ref(const TansDecodeTable& table, TansDecoder* decoder, std::uint8_t* tokens,
                      std::uint16_t* lane_bits, std::uint32_t count) noexcept {
  switch (decoder->lanes) {
    case 64:
      return decode_group<64>(table, decoder, tokens, lane_bits, count);
    case 32:
      return decode_group<32>(table, decoder, tokens, lane_bits, count);
    case 16:
      return decode_group<16>(table, decoder, tokens, lane_bits, count);
    default:
      return decode_group<1>(table, decoder, tokens, lane_bits, count);
  }
}

const char* finish_decoder(const TansDecoder& decoder) noexcept {
  if (decoder.out_of_words) return "the words end too early";
  if (decoder.end != decoder.begin) return "words are left over";
  for (std::uint32_t number = 0; number < decoder.lanes; ++number) {
    const TansDecodeLane& lane = decoder.state[number];
    if (lane.state != 0 || lane.position != 0 || lane.window != 0) {
      return "a lane does not end at its start";
    }
  }
  return nullptr;
}

}  // namespace gradwire::internal
