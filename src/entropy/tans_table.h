// From the 32 frequencies of a table to what the coder looks up (docs/format.md 5.3).
#ifndef GRADWIRE_ENTROPY_TANS_TABLE_H_
#define GRADWIRE_ENTROPY_TANS_TABLE_H_

#include <array>
#include <cstdint>

#include "entropy/tans_format.h"

namespace gradwire::internal {

// One state of the decoder. 8 bytes: the whole table is 1 KiB.
struct TansDecodeEntry {
  std::uint16_t lane_bits_mask;  // the r(token) highest of 16 bits
  std::uint8_t next;             // next state, without the code bits
  std::uint8_t code_bits;        // 0 to 7
  std::uint8_t value_bits;       // code and lane bits, 0 to 16
  std::uint8_t token;
  std::uint16_t unused;
};

struct TansDecodeTable {
  alignas(64) std::array<TansDecodeEntry, kTansStates> states;
};

// The encoder's states run from 128 to 255 and are kept 16 bits up, with room for a value's lane
// bits below them.
inline constexpr std::uint32_t kTansStateShift = 16;

// One token of the encoder. For a state X:
//   code bits nb = (X + delta) >> 8,  next state = states[start + (X >> nb)].
// Derivation: X >> nb must lie in [f, 2f). Let mb be the least number with f << mb > 128; nb is mb
// if X >= f << mb, else mb - 1. delta is (mb << 8) - (f << mb), so that the sum reaches mb << 8
// exactly there, and stays below the next multiple of 256 as X - (f << mb) < 256. Worked example:
// f = 3: mb = 6 (3 << 6 = 192); X = 200: nb = 6, X >> 6 = 3; X = 191: nb = 5, X >> 5 = 5. For f a
// power of two f << mb is 256, which no X reaches: nb is always mb - 1.
struct TansEncodeEntry {
  std::uint32_t delta;  // << kTansStateShift
  std::int16_t start;
  std::uint8_t lane_bits;  // r(token)
  std::uint8_t unused;
};

struct TansEncodeTable {
  alignas(64) std::array<TansEncodeEntry, kTokenCount> tokens;
  // By token, in order of states; << kTansStateShift.
  alignas(64) std::array<std::uint32_t, kTansStates> states;
  // Huffman-7: nb does not depend on the state, and states[i] is i + 128.
  bool is_prefix_code = false;
};

// Null if `frequencies` make a table for values with these lane bits, else what is wrong: the sum
// is not 128, some state would take more than 16 bits, or the kind has no such frequency. A token
// without frequency never occurs.
const char* check_frequencies(TableKind kind, const Frequencies& frequencies,
                              const TokenBits& lane_bits) noexcept;

// `frequencies` must have passed check_frequencies(). The encoder's table holds nothing useful
// for tokens of frequency 0: they must not be encoded.
void make_decode_table(TableKind kind, const Frequencies& frequencies, const TokenBits& lane_bits,
                       TansDecodeTable* table) noexcept;
void make_encode_table(TableKind kind, const Frequencies& frequencies, const TokenBits& lane_bits,
                       TansEncodeTable* table) noexcept;

// The built-in table of this number; null if there is none.
const Frequencies* find_builtin_table(TableKind kind, std::uint8_t number) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_TABLE_H_
