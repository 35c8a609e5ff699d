#include "entropy/prefix_frequencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <random>
#include <string>

#include "entropy/tables.h"
#include "entropy/tans_table.h"

namespace gradwire::internal {
namespace {

using Counts = std::array<std::uint32_t, kTokenCount>;

// Bits that the counted tokens take.
std::uint64_t bits_of(const Counts& counts, const Frequencies& f) {
  std::uint64_t bits = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (f[token] == 0) continue;
    const auto log2 = static_cast<std::uint32_t>(std::bit_width(f[token])) - 1;
    bits += std::uint64_t{counts[token]} * (kTansStateBits - log2);
  }
  return bits;
}

// The fewest bits of any such frequencies, slot by slot and token by token.
std::uint64_t fewest_bits(const Counts& counts, const Frequencies& least) {
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  std::array<std::uint64_t, kTansStates + 1> fewest;
  fewest.fill(kNever);
  fewest[0] = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (least[token] == 0) continue;
    std::array<std::uint64_t, kTansStates + 1> with;
    with.fill(kNever);
    for (std::uint32_t used = 0; used <= kTansStates; ++used) {
      if (fewest[used] == kNever) continue;
      for (std::uint32_t log2 = 0; used + (1u << log2) <= kTansStates; ++log2) {
        if (1u << log2 < least[token]) continue;
        std::uint64_t& best = with[used + (1u << log2)];
        best = std::min(best, fewest[used] + std::uint64_t{counts[token]} * (7 - log2));
      }
    }
    fewest = with;
  }
  return fewest[kTansStates];
}

TEST(PrefixFrequencies, TakeTheFewestBits) {
  constexpr std::uint64_t kSeed = 20261207;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 3000; ++round) {
    Counts counts{};
    Frequencies least{};
    const std::uint64_t most = std::uint64_t{1} << random() % 21;
    for (std::uint32_t token = 0; token < kTokenCount; ++token) {
      if (random() % 4 == 0 && token != 3 && token != 31) continue;
      counts[token] = static_cast<std::uint32_t>(random() % most >> random() % 12);
      least[token] = token != 31 && random() % 8 == 0 ? 2 : 1;
    }
    const Frequencies f = fit_prefix_frequencies(counts, least);
    ASSERT_EQ(check_frequencies(TableKind::kHuffman, f, TokenBits{}), nullptr) << round;
    for (std::uint32_t token = 0; token < kTokenCount; ++token) {
      ASSERT_GE(f[token], least[token]) << round;
      ASSERT_EQ(f[token] == 0, least[token] == 0) << round;
    }
    ASSERT_EQ(bits_of(counts, f), fewest_bits(counts, least)) << round;
  }
}

TEST(PrefixFrequencies, TwoTokensTakeABitEach) {
  Counts counts{};
  counts[4] = 1000;
  Frequencies least{};
  least[4] = 2;
  least[31] = 1;
  const Frequencies f = fit_prefix_frequencies(counts, least);
  EXPECT_EQ(f[4], 64);
  EXPECT_EQ(f[31], 64);
}

TEST(PrefixFrequencies, MakeTheBuiltinTables) {
  for (const BuiltinTable& table : kBuiltinTables) {
    Counts counts{};
    Frequencies least{};
    for (std::uint32_t token = 0; token < kTokenCount; ++token) {
      counts[token] = table.frequencies[token];
      if (counts[token] == 0) continue;
      least[token] = table.number >= 16 && (token == 22 || token == 23) ? 2 : 1;
    }
    EXPECT_EQ(fit_prefix_frequencies(counts, least), table.huffman) << int{table.number};
  }
}

}  // namespace
}  // namespace gradwire::internal
