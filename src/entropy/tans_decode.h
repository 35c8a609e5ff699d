// Words to tokens and lane bits: the coder of docs/format.md section 5.
#ifndef GRADWIRE_ENTROPY_TANS_DECODE_H_
#define GRADWIRE_ENTROPY_TANS_DECODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "entropy/tans_format.h"
#include "entropy/tans_table.h"

namespace gradwire::internal {

// Decoder side of a lane: the 48 - position unread bits of N0, N1, N2 at the top of `window`,
// zeros below.
struct TansDecodeLane {
  std::uint64_t window = 0;
  std::uint32_t position = 0;  // 0 to 15
  std::uint32_t state = 0;     // 0 to 127
};

struct TansDecoder {
  std::array<TansDecodeLane, kMaxLanes> state;
  std::uint32_t lanes = 0;
  // The words section; words are taken from `end` downwards.
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool out_of_words = false;  // set by decode_group_ref(), never cleared
};

// Reads the lane states section (kLaneStateBytes x lanes bytes) and points the decoder at the
// words. Null, or what is wrong. `lanes` is 1, 16, 32 or 64.
const char* start_decoder(std::span<const std::byte> lane_states, std::uint32_t lanes,
                          std::span<const std::byte> words, TansDecoder* decoder) noexcept;

// Decodes the `count` values of the next group. lane_bits[i] gets the r(token) bits of value i at
// the top of 16, zeros below. If words are missing, sets out_of_words and decodes something.
void decode_group_ref(const TansDecodeTable& table, TansDecoder* decoder, std::uint8_t* tokens,
                      std::uint16_t* lane_bits, std::uint32_t count) noexcept;

// After the last group: null, or what is wrong with the end of the stream.
const char* finish_decoder(const TansDecoder& decoder) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_DECODE_H_
