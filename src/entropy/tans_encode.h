// Tokens and lane bits to words: the coder of docs/format.md section 5, backwards.
#ifndef GRADWIRE_ENTROPY_TANS_ENCODE_H_
#define GRADWIRE_ENTROPY_TANS_ENCODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "entropy/tans_format.h"
#include "entropy/tans_table.h"

namespace gradwire::internal {

// Encoder side of a lane. `window` holds N0, N1, N2 in its bits 47..32, 31..16 and 15..0.
struct TansEncodeLane {
  std::uint64_t window = 0;
  std::uint32_t shift = 32;                              // 32 - position: 17 to 32
  std::uint32_t state = kTansStates << kTansStateShift;  // decoder's state + 128
};
using TansEncodeLanes = std::array<TansEncodeLane, kMaxLanes>;

// Encodes one group, whose rows must have the values' order; groups are encoded from the last to
// the first. tokens[i] must have a frequency above 0; lane_bits[i] holds its r(token) bits at the
// top of 16, zeros below. Words go to `words`, at most `count` of them, upwards, little-endian; the
// place behind the last may be written too.
// Returns the end of what was written. `lanes` is 1, 16, 32 or 64.
std::byte* encode_group_ref(const TansEncodeTable& table, std::uint32_t lanes,
                            const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                            std::uint32_t count, TansEncodeLanes* state, std::byte* words);

// Writes the lane states section: kLaneStateBytes x lanes bytes.
void write_lane_states(const TansEncodeLanes& state, std::uint32_t lanes, std::byte* out) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_ENCODE_H_
