// A block's own table (docs/format.md section 8): from a sample of its tokens to frequencies, and
// whether they are worth their 32 bytes. Integers only: the same choice everywhere.
#ifndef GRADWIRE_ENTROPY_OWN_TABLE_H_
#define GRADWIRE_ENTROPY_OWN_TABLE_H_

#include <array>
#include <cstdint>

#include "entropy/tans_format.h"

namespace gradwire::internal {

using TokenCounts = std::array<std::uint32_t, kTokenCount>;

// What tables of a form look like. Masks have bit t for token t.
struct TableForm {
  TableKind kind = TableKind::kTans;
  TokenBits lane_bits{};
  std::uint32_t run = 0;         // tokens of which a table holds one run without holes
  std::uint32_t fixed = 0;       // tokens that every table holds; the escape is one
  std::uint32_t value_bits = 0;  // of a value's type: what an escape costs besides its code
};

struct TokenSample {
  TokenCounts counts{};
  std::uint64_t visited = 0;  // values looked at, those of zero groups too
  std::uint64_t values = 0;   // of the whole block, 1 to 2^20
  bool complete = false;      // all of them were looked at
};

// Counts in four parts, so that equal neighbours do not wait for one another.
using TokenTally = std::array<TokenCounts, 4>;
// Adds `count` tokens, each below 32.
void count_tokens(const std::uint8_t* tokens, std::uint32_t count, TokenTally* tally) noexcept;
TokenCounts total_counts(const TokenTally& tally) noexcept;

// Frequencies that fit the sample, at least one of whose counts is not 0.
Frequencies fit_frequencies(const TokenCounts& counts, const TableForm& form) noexcept;

// Bits that the sample takes with this table, in units of 2^-12 bit; less than 2^39.
std::uint64_t sample_cost(const TokenCounts& counts, const TableForm& form,
                          const Frequencies& frequencies) noexcept;

struct OwnTable {
  bool worth_it = false;
  Frequencies frequencies{};
  std::uint64_t builtin_cost = 0;  // sample_cost() of the built-in table
};
OwnTable choose_own_table(const TokenSample& sample, const TableForm& form,
                          const Frequencies& builtin) noexcept;

// True if a block that took `bits` with its own table, that included, is so much larger than the
// sample lets the built-in table expect that it should be coded with that one. bits < 2^27.
bool own_table_failed(const TokenSample& sample, const OwnTable& table,
                      std::uint64_t bits) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_OWN_TABLE_H_
