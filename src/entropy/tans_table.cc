#include "entropy/tans_table.h"

#include <bit>

#include "entropy/tables.h"

namespace gradwire::internal {
namespace {

// floor(log2 y), y > 0.
constexpr std::uint32_t log2_floor(std::uint32_t y) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(y)) - 1;
}

// A token's states: scattered, or for a prefix code side by side.
std::array<std::uint8_t, kTansStates> spread(TableKind kind,
                                             const Frequencies& frequencies) noexcept {
  const std::uint32_t step = kind == TableKind::kHuffman ? 1 : kTansSpread;
  std::array<std::uint8_t, kTansStates> symbol{};
  std::uint32_t position = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    for (std::uint32_t i = 0; i < frequencies[token]; ++i) {
      symbol[position] = static_cast<std::uint8_t>(token);
      position = (position + step) % kTansStates;
    }
  }
  return symbol;
}

}  // namespace

const char* check_frequencies(TableKind kind, const Frequencies& frequencies,
                              const TokenBits& lane_bits) noexcept {
  std::uint32_t sum = 0;
  for (const std::uint8_t f : frequencies) sum += f;
  if (sum != kTansStates) return "the frequencies do not add up to 128";
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (frequencies[token] == 0) continue;
    if (kind == TableKind::kHuffman &&
        (!std::has_single_bit(frequencies[token]) || frequencies[token] > kMaxPrefixFrequency)) {
      return "a frequency of the prefix code is not a power of two up to 64";
    }
    // The first of a token's states takes the most bits.
    const std::uint32_t most = kTansStateBits - log2_floor(frequencies[token]);
    if (most + lane_bits[token] > kMaxValueBits) return "a token takes more than 16 bits";
  }
  return nullptr;
}

void make_decode_table(TableKind kind, const Frequencies& frequencies, const TokenBits& lane_bits,
                       TansDecodeTable* table) noexcept {
  const auto symbol = spread(kind, frequencies);
  Frequencies count = frequencies;
  for (std::uint32_t state = 0; state < kTansStates; ++state) {
    const std::uint8_t token = symbol[state];
    const std::uint32_t y = count[token]++;
    const std::uint32_t code_bits = kTansStateBits - log2_floor(y);
    const std::uint32_t r = lane_bits[token];
    TansDecodeEntry& entry = table->states[state];
    entry.lane_bits_mask = static_cast<std::uint16_t>(0xFFFF0000u >> r);
    entry.next = static_cast<std::uint8_t>((y << code_bits) - kTansStates);
    entry.code_bits = static_cast<std::uint8_t>(code_bits);
    entry.value_bits = static_cast<std::uint8_t>(code_bits + r);
    entry.token = token;
    entry.unused = 0;
  }
}

void make_encode_table(TableKind kind, const Frequencies& frequencies, const TokenBits& lane_bits,
                       TansEncodeTable* table) noexcept {
  const auto symbol = spread(kind, frequencies);
  std::array<std::uint32_t, kTokenCount> fill{};
  std::uint32_t first = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const std::uint32_t f = frequencies[token];
    TansEncodeEntry& entry = table->tokens[token];
    entry = {};
    entry.lane_bits = lane_bits[token];
    if (f > 0) {
      const std::uint32_t mb = f > 1 ? kTansStateBits - log2_floor(f - 1) : kTansStateBits + 1;
      entry.delta = ((mb << 8) - (f << mb)) << kTansStateShift;
      entry.start = static_cast<std::int16_t>(static_cast<std::int32_t>(first) -
                                              static_cast<std::int32_t>(f));
    }
    fill[token] = first;
    first += f;
  }
  for (std::uint32_t state = 0; state < kTansStates; ++state) {
    table->states[fill[symbol[state]]++] = (state + kTansStates) << kTansStateShift;
  }
  table->is_prefix_code = kind == TableKind::kHuffman;
}

const Frequencies* find_builtin_table(TableKind kind, std::uint8_t number) noexcept {
  for (const BuiltinTable& table : kBuiltinTables) {
    if (table.number != number) continue;
    return kind == TableKind::kHuffman ? &table.huffman : &table.frequencies;
  }
  return nullptr;
}

}  // namespace gradwire::internal
