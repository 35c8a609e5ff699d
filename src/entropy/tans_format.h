// Constants of the coder (docs/format.md section 5) that encoder and decoder share.
#ifndef GRADWIRE_ENTROPY_TANS_FORMAT_H_
#define GRADWIRE_ENTROPY_TANS_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::uint32_t kTansStates = 128;
inline constexpr std::uint32_t kTansStateBits = 7;
inline constexpr std::uint32_t kTansSpread = 83;
// Huffman-7: codes of 1 to 7 bits.
inline constexpr std::uint32_t kMaxPrefixFrequency = 64;
inline constexpr std::uint32_t kTokenCount = 32;
inline constexpr std::uint8_t kTokenEscape = 31;
// Code and lane bits of one value at most: one word.
inline constexpr std::uint32_t kMaxValueBits = 16;

inline constexpr std::uint32_t kMaxLanes = 64;
// Lanes that refill from the stream together.
inline constexpr std::uint32_t kHalfLanes = 32;
// N0, N1, N2 (u16), state and position (u8).
inline constexpr std::size_t kLaneStateBytes = 8;
inline constexpr std::size_t kWordBytes = 2;
inline constexpr std::size_t kTableBytes = kTokenCount;

constexpr bool valid_lane_count(std::uint32_t lanes) noexcept {
  return lanes == 1 || lanes == 16 || lanes == 32 || lanes == 64;
}

// Which value of a row a lane carries. In each half of up to 32 lanes, even lanes take the first
// half of the values and odd lanes the second: the order that packing two vectors of 32-bit
// lanes into one of 16-bit lanes gives.
constexpr std::uint32_t lane_value(std::uint32_t lanes, std::uint32_t lane) noexcept {
  if (lanes == 1) return 0;
  const std::uint32_t half = lanes < kHalfLanes ? lanes : kHalfLanes;
  return lane / half * half + (lane % half) / 2 + (half / 2) * (lane % 2);
}

// What the numbers of a table are: any frequencies, or those of a prefix code, Huffman-7.
enum class TableKind : std::uint8_t { kTans, kHuffman };
using Frequencies = std::array<std::uint8_t, kTokenCount>;
// r(token): lane bits that follow the code of each token.
using TokenBits = std::array<std::uint8_t, kTokenCount>;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_FORMAT_H_
