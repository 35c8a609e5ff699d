#include "entropy/own_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "entropy/prefix_frequencies.h"

namespace gradwire::internal {
namespace {

// Costs are numbers of 2^-12 bit.
constexpr std::uint32_t kBit = 4096;
// Cost of a slot of the table for every value: LOG2[128] - LOG2[127].
constexpr std::uint64_t kSlotCost = 47;
// 2 log2(e) bits. A frequency measured on S independent values is off by so much that the sample
// makes the table look better than it is by log2(e) / 2 bits, and the block pays as much. Values of
// one group are not independent: twice that.
constexpr std::uint64_t kNoiseCost = 11819;
// 1/256 bit per value: what a table of whole slots and the coder lose besides.
constexpr std::uint64_t kMargin = kBit / 256;

// floor(4096 log2 f). The fraction's bits come from squaring 1 <= m < 2, held in 32 bits: a cut at
// the 31st bit grows to 2^-19 in twelve squarings, less than what parts any f from the next number
// of 4096ths (own_table_test.cc has them all).
constexpr std::uint16_t log2_of(std::uint32_t f) noexcept {
  const auto whole = static_cast<std::uint32_t>(std::bit_width(f)) - 1;
  std::uint64_t m = std::uint64_t{f} << (31 - whole);
  std::uint32_t result = whole;
  for (int bit = 0; bit < 12; ++bit) {
    m = (m * m) >> 31;
    const std::uint32_t above = static_cast<std::uint32_t>(m >> 32);  // 0 or 1: m is 2 or more
    m >>= above;
    result = 2 * result + above;
  }
  return static_cast<std::uint16_t>(result);
}

constexpr std::array<std::uint16_t, kTansStates + 1> make_log2() noexcept {
  std::array<std::uint16_t, kTansStates + 1> table{};
  for (std::uint32_t f = 1; f <= kTansStates; ++f) table[f] = log2_of(f);
  return table;
}
constexpr std::array<std::uint16_t, kTansStates + 1> kLog2 = make_log2();
static_assert(kLog2[128] - kLog2[127] == kSlotCost);

constexpr bool has(std::uint32_t mask, std::uint32_t token) noexcept {
  return (mask >> token & 1) != 0;
}

// Slots that a token needs so that its code and lane bits fit into 16 bits.
constexpr std::uint32_t least_slots(std::uint32_t lane_bits) noexcept {
  constexpr std::uint32_t kFree = kMaxValueBits - kTansStateBits;
  return lane_bits > kFree ? 1u << (lane_bits - kFree) : 1;
}

// True if escapes are cheaper than the slots of this end of the run.
bool leaves_run(std::uint32_t token, const TokenCounts& counts, std::uint64_t sum,
                const TableForm& form) noexcept {
  const std::uint32_t r = form.lane_bits[token];
  return !has(form.fixed, token) && std::uint64_t{kBit} * counts[token] * (form.value_bits - r) <=
                                        kSlotCost * sum * least_slots(r);
}

// The tokens of the table, as a mask; the counts of those that leave the run go to the escape.
std::uint32_t choose_tokens(TokenCounts* counts, std::uint64_t sum,
                            const TableForm& form) noexcept {
  std::uint32_t seen = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (has(form.run, token) && ((*counts)[token] > 0 || has(form.fixed, token))) {
      seen |= 1u << token;
    }
  }
  if (seen == 0) seen = 1;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(seen));
  const auto last = static_cast<std::uint32_t>(std::bit_width(seen)) - 1;
  std::uint32_t run = form.run & (~0u << first) & (~0u >> (31 - last));
  const auto trim = [&](auto end_of) {
    while (std::popcount(run) > 1) {
      const std::uint32_t token = end_of();
      if (!leaves_run(token, *counts, sum, form)) break;
      run &= ~(1u << token);
      (*counts)[kTokenEscape] += (*counts)[token];
      (*counts)[token] = 0;
    }
  };
  trim([&run] { return static_cast<std::uint32_t>(std::bit_width(run)) - 1; });
  trim([&run] { return static_cast<std::uint32_t>(std::countr_zero(run)); });
  return run | form.fixed;
}

// One slot more for the token whose bits it saves most.
void give_slot(const TokenCounts& counts, Frequencies* f) noexcept {
  std::uint32_t best = kTokenEscape;
  std::int64_t most = -1;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const std::uint32_t slots = (*f)[token];
    if (slots == 0) continue;
    const std::int64_t gain = std::int64_t{counts[token]} * (kLog2[slots + 1] - kLog2[slots]);
    if (gain > most) {
      most = gain;
      best = token;
    }
  }
  ++(*f)[best];
}

// One slot less for the token that it costs least. There is one with more than its least: those
// add up to 34 at most.
void take_slot(const TokenCounts& counts, const Frequencies& least, Frequencies* f) noexcept {
  std::uint32_t best = kTokenEscape;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const std::uint32_t slots = (*f)[token];
    if (slots <= least[token]) continue;
    const std::int64_t loss = std::int64_t{counts[token]} * (kLog2[slots] - kLog2[slots - 1]);
    if (loss < smallest) {
      smallest = loss;
      best = token;
    }
  }
  --(*f)[best];
}

// Any frequencies of 1/128: each token's share, rounded down, and the rest slot by slot.
Frequencies fit_tans_frequencies(const TokenCounts& counts, const Frequencies& least,
                                 std::uint64_t sum) noexcept {
  Frequencies f = least;
  std::uint32_t slots = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (least[token] == 0) continue;
    const std::uint64_t share = kTansStates * std::uint64_t{counts[token]} / sum;
    f[token] = static_cast<std::uint8_t>(std::max<std::uint64_t>(share, least[token]));
    slots += f[token];
  }
  for (; slots < kTansStates; ++slots) give_slot(counts, &f);
  for (; slots > kTansStates; --slots) take_slot(counts, least, &f);
  return f;
}

std::uint64_t sum_of(const TokenCounts& counts) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint32_t count : counts) sum += count;
  return sum;
}

}  // namespace

void count_tokens(const std::uint8_t* tokens, std::uint32_t count, TokenTally* tally) noexcept {
  std::uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::uint32_t part = 0; part < 4; ++part) ++(*tally)[part][tokens[i + part]];
  }
  for (; i < count; ++i) ++(*tally)[0][tokens[i]];
}

TokenCounts total_counts(const TokenTally& tally) noexcept {
  TokenCounts total{};
  for (const TokenCounts& part : tally) {
    for (std::uint32_t token = 0; token < kTokenCount; ++token) total[token] += part[token];
  }
  return total;
}

Frequencies fit_frequencies(const TokenCounts& counts, const TableForm& form) noexcept {
  TokenCounts fitted = counts;
  const std::uint64_t sum = sum_of(counts);
  const std::uint32_t tokens = choose_tokens(&fitted, sum, form);
  Frequencies least{};
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (!has(tokens, token)) continue;
    least[token] = static_cast<std::uint8_t>(least_slots(form.lane_bits[token]));
  }
  return form.kind == TableKind::kHuffman ? fit_prefix_frequencies(fitted, least)
                                          : fit_tans_frequencies(fitted, least, sum);
}

std::uint64_t sample_cost(const TokenCounts& counts, const TableForm& form,
                          const Frequencies& frequencies) noexcept {
  std::uint64_t cost = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const bool escapes = token == kTokenEscape || frequencies[token] == 0;
    const std::uint32_t slots = frequencies[escapes ? kTokenEscape : token];
    const std::uint32_t raw = escapes ? form.value_bits : form.lane_bits[token];
    cost += std::uint64_t{counts[token]} * (kBit * (kTansStateBits + raw) - kLog2[slots]);
  }
  return cost;
}

OwnTable choose_own_table(const TokenSample& sample, const TableForm& form,
                          const Frequencies& builtin) noexcept {
  OwnTable table;
  const std::uint64_t sum = sum_of(sample.counts);
  if (sum == 0) return table;
  table.builtin_cost = sample_cost(sample.counts, form, builtin);
  table.frequencies = fit_frequencies(sample.counts, form);
  std::uint64_t price = kMargin * sum + 8 * kTableBytes * kBit * sample.visited / sample.values;
  for (const std::uint8_t f : table.frequencies) {
    if (f > 0 && !sample.complete) price += kNoiseCost;
  }
  table.worth_it = table.builtin_cost > sample_cost(sample.counts, form, table.frequencies) + price;
  return table;
}

bool own_table_failed(const TokenSample& sample, const OwnTable& table,
                      std::uint64_t bits) noexcept {
  // With 2^20 values of at most 64 + 16 bits, less than 2^27 x 2^16 x 2^20 and 2^5 x 2^20 x 2^39.
  return bits * 16 * kBit * sample.visited > 17 * sample.values * table.builtin_cost;
}

}  // namespace gradwire::internal
