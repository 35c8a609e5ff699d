#include "entropy/own_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "entropy/tans_encode.h"
#include "entropy/tans_table.h"
#include "quantize/exponent_form_format.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {
namespace {

TableForm step_form() {
  TableForm form;
  form.lane_bits = step_lane_bits(23);
  form.value_bits = 32;
  form.run = 0x00FFFFF5;
  form.fixed = 0x80000005;
  return form;
}

TableForm exponent_form() {
  TableForm form;
  form.lane_bits = exponent_lane_bits(MantissaSplit{6, 0});
  form.value_bits = 32;
  form.run = 0x3FFFFFFF;
  form.fixed = 0xC0000000;
  return form;
}

bool has(std::uint32_t mask, std::uint32_t token) { return (mask >> token & 1) != 0; }

// Tokens of the form: a distribution of random steepness around a random token.
TokenCounts random_counts(std::mt19937_64& random, const TableForm& form) {
  TokenCounts counts{};
  const auto center = static_cast<double>(random() % 30);
  const double width = std::exp2(static_cast<double>(random() % 70) / 10 - 3);
  const double size = std::exp2(static_cast<double>(random() % 200) / 10);
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (!has(form.run | form.fixed, token)) continue;
    const double height = size * std::exp(-std::abs(token - center) / width);
    counts[token] = static_cast<std::uint32_t>(std::min(height, 1048575.0)) >> (random() % 3);
  }
  return counts;
}

std::uint64_t sum_of(const TokenCounts& counts) {
  std::uint64_t sum = 0;
  for (const std::uint32_t count : counts) sum += count;
  return sum;
}

double entropy_of(const TokenCounts& counts) {
  double bits = 0;
  for (const std::uint32_t count : counts) {
    if (count > 0) bits += count * std::log2(static_cast<double>(sum_of(counts)) / count);
  }
  return bits;
}

TEST(OwnTable, FrequenciesAreTablesTheEncoderCanUse) {
  constexpr std::uint64_t kSeed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (const TableForm& form : {step_form(), exponent_form()}) {
    for (int round = 0; round < 3000; ++round) {
      const TokenCounts counts = random_counts(random, form);
      if (sum_of(counts) == 0) continue;
      SCOPED_TRACE("round " + std::to_string(round));
      const Frequencies f = fit_frequencies(counts, form);
      const char* problem = check_frequencies(TableKind::kTans, f, form.lane_bits);
      ASSERT_EQ(problem, nullptr) << problem;
      int runs = 0;
      bool in_run = false;
      for (std::uint32_t token = 0; token < kTokenCount; ++token) {
        if (has(form.fixed, token)) {
          EXPECT_GE(f[token], 1) << token;
        }
        if (!has(form.run | form.fixed, token)) {
          EXPECT_EQ(f[token], 0) << token;
        }
        if (!has(form.run, token)) continue;
        runs += !in_run && f[token] > 0;
        in_run = f[token] > 0;
      }
      EXPECT_EQ(runs, 1);
    }
  }
}

TEST(OwnTable, LogarithmsAreExact) {
  // One token against another of f slots: the cost of 4096 of them is that of LOG2[f].
  TableForm form;
  form.value_bits = 32;
  for (std::uint32_t f = 1; f < kTansStates; ++f) {
    Frequencies frequencies{};
    frequencies[0] = static_cast<std::uint8_t>(f);
    frequencies[31] = static_cast<std::uint8_t>(kTansStates - f);
    TokenCounts counts{};
    counts[0] = 1;
    // f^4096 is an integer: only a power of two comes near to one of another.
    const auto log2 = static_cast<std::uint64_t>(std::floor(4096 * std::log2(f) + 1e-9));
    EXPECT_EQ(sample_cost(counts, form, frequencies), 7 * 4096 - log2) << f;
  }
}

TEST(OwnTable, CountsEveryToken) {
  std::mt19937_64 random(7);
  for (const std::size_t count : {0u, 1u, 3u, 4u, 1023u}) {
    std::vector<std::uint8_t> tokens(count);
    TokenCounts expected{};
    expected[5] = 2;
    TokenTally tally{};
    tally[3][5] = 2;
    for (std::uint8_t& token : tokens) ++expected[token = static_cast<std::uint8_t>(random() % 32)];
    count_tokens(tokens.data(), static_cast<std::uint32_t>(count), &tally);
    EXPECT_EQ(total_counts(tally), expected) << count;
  }
}

// Bits that the coder takes for values with these tokens in random order, lane bits left out;
// escapes with the 32 bits of their value.
double coded_bits(const TokenCounts& counts, const Frequencies& frequencies) {
  std::vector<std::uint8_t> tokens;
  std::uint64_t escapes = 0;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const bool escaped = frequencies[token] == 0;
    if (escaped) escapes += counts[token];
    tokens.insert(tokens.end(), counts[token],
                  escaped ? kTokenEscape : static_cast<std::uint8_t>(token));
  }
  std::mt19937_64 random(11);
  std::shuffle(tokens.begin(), tokens.end(), random);
  TansEncodeTable table;
  make_encode_table(TableKind::kTans, frequencies, TokenBits{}, &table);
  TansEncodeLanes lanes{};
  const std::vector<std::uint16_t> lane_bits(tokens.size());
  std::vector<std::byte> words(2 * tokens.size() + 2);
  const std::byte* end =
      encode_group_ref(table, kMaxLanes, tokens.data(), lane_bits.data(),
                       static_cast<std::uint32_t>(tokens.size()), &lanes, words.data());
  return 8.0 * static_cast<double>(end - words.data()) + 32.0 * static_cast<double>(escapes);
}

TEST(OwnTable, TakesTheEntropy) {
  constexpr std::uint32_t kValues = 1 << 17;
  struct Mix {
    const char* name;
    std::vector<double> shares;  // of tokens 0, 1, ...
  };
  std::vector<Mix> mixes = {{"two", {0.5, 0.5}}, {"zeros", {0.8, 0.1, 0.06, 0.03, 0.01}}};
  mixes.push_back({"uniform", std::vector<double>(30, 1.0 / 30)});
  for (const double ratio : {0.3, 0.6, 0.9}) {
    Mix mix{"geometric", {}};
    for (int token = 0; token < 30; ++token) mix.shares.push_back(std::pow(ratio, token));
    double sum = 0;
    for (const double share : mix.shares) sum += share;
    for (double& share : mix.shares) share /= sum;
    mixes.push_back(mix);
  }
  for (const Mix& mix : mixes) {
    SCOPED_TRACE(std::string(mix.name) + " " + std::to_string(mix.shares[0]));
    TokenCounts counts{};
    for (std::size_t token = 0; token < mix.shares.size(); ++token) {
      counts[token] = static_cast<std::uint32_t>(kValues * mix.shares[token]);
    }
    TableForm form = exponent_form();
    form.lane_bits = TokenBits{};
    const Frequencies f = fit_frequencies(counts, form);
    EXPECT_LT(coded_bits(counts, f), 1.03 * entropy_of(counts) + 0.02 * kValues);
  }
}

TEST(OwnTable, OneTokenCostsNearlyNothing) {
  constexpr std::uint32_t kValues = 1 << 17;
  for (const TableForm& form : {step_form(), exponent_form()}) {
    for (const std::uint32_t token : {0u, 2u, 9u, 21u}) {
      TokenCounts counts{};
      counts[token] = kValues;
      const Frequencies f = fit_frequencies(counts, form);
      // In step form the run begins at token 0: a slot for each token below.
      if (!has(form.fixed, 0) || token < 4) {
        EXPECT_LT(coded_bits(counts, f), 0.04 * kValues) << token;
      }
      EXPECT_GE(f[token], 128 - 20) << token;
    }
  }
}

TEST(OwnTable, IsTakenOnlyWhereItPays) {
  const TableForm form = exponent_form();
  const Frequencies builtin = *find_builtin_table(TableKind::kTans, 1);
  TokenSample sample;
  sample.values = 1 << 18;
  sample.visited = 2048;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    sample.counts[token] = 16u * builtin[token];
  }
  EXPECT_FALSE(choose_own_table(sample, form, builtin).worth_it) << "as the built-in table";
  sample.counts = {};
  EXPECT_FALSE(choose_own_table(sample, form, builtin).worth_it) << "only zero groups";
  sample.counts[20] = 2048;
  const OwnTable table = choose_own_table(sample, form, builtin);
  EXPECT_TRUE(table.worth_it);
  EXPECT_EQ(table.builtin_cost, sample_cost(sample.counts, form, builtin));
  const std::uint64_t expected = table.builtin_cost / 4096 * (sample.values / sample.visited);
  EXPECT_FALSE(own_table_failed(sample, table, expected));
  EXPECT_FALSE(own_table_failed(sample, table, expected * 17 / 16 - 8));
  EXPECT_TRUE(own_table_failed(sample, table, expected * 17 / 16 + 8 * 4096));
  // A block of a few values does not pay for 32 bytes.
  sample.complete = true;
  sample.values = sample.visited = sample.counts[20] = 8;
  EXPECT_FALSE(choose_own_table(sample, form, builtin).worth_it);
}

}  // namespace
}  // namespace gradwire::internal
