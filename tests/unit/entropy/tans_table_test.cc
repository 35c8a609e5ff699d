#include "entropy/tans_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

#include "entropy/tables.h"
#include "quantize/exponent_form_format.h"
#include "quantize/float_format.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {
namespace {

constexpr std::uint8_t kExponentTable = 1;

TokenBits widest_lane_bits(const BuiltinTable& table) {
  return table.number == kExponentTable ? exponent_lane_bits(MantissaSplit{8, 0})
                                        : step_lane_bits(Float32Format::kMantissaBits);
}

TEST(BuiltinTables, AreTheNumbersOfTheFormat) {
  std::set<int> expected = {kExponentTable};
  for (int level = 0; level < 23; ++level) expected.insert(16 + level);
  std::set<int> found;
  for (const BuiltinTable& table : kBuiltinTables) {
    found.insert(table.number);
    EXPECT_EQ(find_builtin_table(TableKind::kTans, table.number), &table.frequencies);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(find_builtin_table(TableKind::kTans, 0), nullptr);
  EXPECT_EQ(find_builtin_table(TableKind::kTans, 39), nullptr);
}

TEST(BuiltinTables, AreTables) {
  for (const BuiltinTable& table : kBuiltinTables) {
    SCOPED_TRACE("table " + std::to_string(table.number));
    const char* problem =
        check_frequencies(TableKind::kTans, table.frequencies, widest_lane_bits(table));
    EXPECT_EQ(problem, nullptr) << problem;
    EXPECT_GE(table.frequencies[kTokenEscape], 1) << "every value can be an escape";
  }
}

// The encoder turns what is outside the run of tokens into escapes.
TEST(BuiltinTables, HaveOneRunOfTokens) {
  for (const BuiltinTable& table : kBuiltinTables) {
    SCOPED_TRACE("table " + std::to_string(table.number));
    const bool exponent = table.number == kExponentTable;
    EXPECT_EQ(exponent, table.frequencies[kExponentZero] > 0);
    int changes = 0;
    bool in_run = !exponent;
    for (std::uint32_t token = 0; token < kExponentZero; ++token) {
      if (!exponent && !step_token_exists(token)) {
        EXPECT_EQ(table.frequencies[token], 0) << token;
        continue;
      }
      const bool used = table.frequencies[token] > 0;
      if (used != in_run) ++changes;
      in_run = used;
    }
    EXPECT_LE(changes, exponent ? 2 : 1);
    EXPECT_GT(table.frequencies[exponent ? 4 : 0], 0);
  }
}

// SYMBOL, BITS and NEXT as docs/format.md 5.3 writes them.
TEST(DecodeTable, FollowsTheFormat) {
  for (const BuiltinTable& table : kBuiltinTables) {
    const TokenBits lane_bits = widest_lane_bits(table);
    TansDecodeTable decode;
    make_decode_table(TableKind::kTans, table.frequencies, lane_bits, &decode);
    int symbol[128];
    int pos = 0;
    for (int token = 0; token < 32; ++token) {
      for (int i = 0; i < table.frequencies[static_cast<std::size_t>(token)]; ++i) {
        symbol[pos] = token;
        pos = (pos + 83) % 128;
      }
    }
    Frequencies v = table.frequencies;
    for (std::uint32_t x = 0; x < 128; ++x) {
      const auto s = static_cast<std::size_t>(symbol[x]);
      const unsigned y = v[s]++;
      int bits = 7;
      for (unsigned z = y; z > 1; z /= 2) --bits;
      const TansDecodeEntry& entry = decode.states[x];
      ASSERT_EQ(entry.token, s);
      ASSERT_EQ(entry.code_bits, bits);
      ASSERT_EQ(entry.next, (y << bits) - 128);
      ASSERT_EQ(entry.value_bits, bits + lane_bits[s]);
      ASSERT_LE(entry.value_bits, 16);
      ASSERT_EQ(std::popcount(entry.lane_bits_mask), lane_bits[s]);
    }
  }
}

// What the encoder looks up is the inverse of what the decoder looks up.
TEST(EncodeTable, UndoesTheDecodeTable) {
  for (const BuiltinTable& table : kBuiltinTables) {
    const TokenBits lane_bits = widest_lane_bits(table);
    TansDecodeTable decode;
    TansEncodeTable encode;
    make_decode_table(TableKind::kTans, table.frequencies, lane_bits, &decode);
    make_encode_table(TableKind::kTans, table.frequencies, lane_bits, &encode);
    for (std::uint32_t before = 0; before < 128; ++before) {
      const TansDecodeEntry& entry = decode.states[before];
      for (std::uint32_t code = 0; code < (1u << entry.code_bits); ++code) {
        const std::uint32_t after = entry.next + code + 128;
        const TansEncodeEntry& inverse = encode.tokens[entry.token];
        const std::uint32_t nb = ((after << 16) + inverse.delta) >> 24;
        ASSERT_EQ(nb, entry.code_bits);
        ASSERT_EQ(after & ((1u << nb) - 1), code);
        const int index = inverse.start + static_cast<int>(after >> nb);
        ASSERT_GE(index, 0);
        ASSERT_LT(index, 128);
        ASSERT_EQ(encode.states[static_cast<std::size_t>(index)] >> 16, before + 128);
      }
    }
  }
}

TEST(CheckFrequencies, RefusesWhatIsNoTable) {
  Frequencies frequencies{};
  TokenBits lane_bits{};
  EXPECT_NE(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  frequencies[0] = 127;
  EXPECT_NE(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  frequencies[5] = 1;
  EXPECT_EQ(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  lane_bits[5] = 9;
  EXPECT_EQ(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  lane_bits[5] = 10;
  EXPECT_NE(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  frequencies[0] = 126;
  frequencies[5] = 2;
  EXPECT_EQ(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
  frequencies.fill(255);
  EXPECT_NE(check_frequencies(TableKind::kTans, frequencies, lane_bits), nullptr);
}

}  // namespace
}  // namespace gradwire::internal
