// The coder in vector registers against the plain one, word for word. Where this machine (or
// GRADWIRE_TARGET) has no vector coder, its plain fallback is what runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "entropy/tables.h"
#include "entropy/tans_decode_simd.h"
#include "entropy/tans_encode_simd.h"
#include "quantize/float_format.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {
namespace {

struct Values {
  std::vector<std::uint8_t> tokens;
  std::vector<std::uint16_t> lane_bits;
};

Values random_values(const Frequencies& frequencies, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values;
  for (std::size_t i = 0; i < count; ++i) {
    auto slot = static_cast<std::uint32_t>(random() % kTansStates);
    std::uint8_t token = 0;
    while (slot >= frequencies[token]) slot -= frequencies[token++];
    values.tokens.push_back(token);
    const std::uint32_t keep = 0xFFFF0000u >> step_lane_bits(Float32Format::kMantissaBits)[token];
    values.lane_bits.push_back(static_cast<std::uint16_t>(random() & keep));
  }
  return values;
}

struct Coded {
  std::vector<std::byte> states;
  std::vector<std::uint16_t> words;
};

Coded encode(const TansEncodeTable& table, const Values& values, std::size_t group, bool vector) {
  std::vector<std::byte> words(kWordBytes * (values.tokens.size() + kEncodeSlackWords));
  TansEncodeLanes lanes{};
  TansVectorEncoder encoder;
  start_vector_encoder(table, &encoder);
  std::byte* end = words.data();
  for (std::size_t last = values.tokens.size(); last > 0;) {
    const std::size_t first = (last - 1) / group * group;
    const auto count = static_cast<std::uint32_t>(last - first);
    const std::uint8_t* tokens = values.tokens.data() + first;
    const std::uint16_t* lane_bits = values.lane_bits.data() + first;
    end = vector ? encode_group_simd(table, tokens, lane_bits, count, &encoder, end)
                 : encode_group_ref(table, kMaxLanes, tokens, lane_bits, count, &lanes, end);
    last = first;
  }
  if (vector) finish_vector_encoder(encoder, &lanes);
  Coded coded;
  coded.states.resize(kLaneStateBytes * kMaxLanes);
  write_lane_states(lanes, kMaxLanes, coded.states.data());
  coded.words.resize(static_cast<std::size_t>(end - words.data()) / kWordBytes);
  if (!coded.words.empty()) {
    std::memcpy(coded.words.data(), words.data(), kWordBytes * coded.words.size());
  }
  return coded;
}

// The verdict, "" if good. The words lie at the end of their buffer but for `behind` bytes.
std::string decode(const TansDecodeTable& table, const Coded& coded, std::size_t group,
                   std::size_t behind, bool vector, Values* values) {
  const std::size_t bytes = kWordBytes * coded.words.size();
  std::vector<std::byte> block(bytes + behind, std::byte{0xA5});
  if (bytes > 0) std::memcpy(block.data(), coded.words.data(), bytes);
  TansDecoder decoder;
  const std::span<const std::byte> words(block.data(), bytes);
  if (const char* problem = start_decoder(coded.states, kMaxLanes, words, &decoder)) return problem;
  TansVectorDecoder registers;
  start_vector_decoder(table, decoder, block.data() + block.size(), &registers);
  for (std::size_t first = 0; first < values->tokens.size(); first += group) {
    const auto count = static_cast<std::uint32_t>(std::min(group, values->tokens.size() - first));
    std::uint8_t* tokens = values->tokens.data() + first;
    std::uint16_t* lane_bits = values->lane_bits.data() + first;
    if (vector) {
      decode_group_simd(table, &decoder, &registers, tokens, lane_bits, count);
    } else {
      decode_group_ref(table, &decoder, tokens, lane_bits, count);
    }
  }
  if (vector) finish_vector_decoder(registers, &decoder);
  const char* problem = finish_decoder(decoder);
  return problem == nullptr ? "" : problem;
}

struct TableCase {
  std::uint8_t number;
  TableKind kind;
};

class TansSimd : public ::testing::TestWithParam<TableCase> {
 protected:
  void SetUp() override {
    const TokenBits lane_bits = step_lane_bits(Float32Format::kMantissaBits);
    frequencies_ = *find_builtin_table(GetParam().kind, GetParam().number);
    make_encode_table(GetParam().kind, frequencies_, lane_bits, &encode_table_);
    make_decode_table(GetParam().kind, frequencies_, lane_bits, &decode_table_);
  }

  Frequencies frequencies_;
  TansEncodeTable encode_table_;
  TansDecodeTable decode_table_;
};

constexpr std::size_t kSizes[] = {1, 63, 64, 65, 128, 1000, 4096, 40000};
constexpr std::size_t kGroups[] = {64, 256, 320, 4096};

TEST_P(TansSimd, GivesTheSameWords) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t group : kGroups) {
      const Values values = random_values(frequencies_, size, 7 * size + group);
      const Coded plain = encode(encode_table_, values, group, false);
      const Coded vector = encode(encode_table_, values, group, true);
      EXPECT_EQ(plain.states, vector.states) << size << " " << group;
      EXPECT_EQ(plain.words, vector.words) << size << " " << group;
    }
  }
}

TEST_P(TansSimd, DecodesTheSameWithAnyRoomBehindTheWords) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t behind : {0, 1, 63, 64, 200}) {
      const Values values = random_values(frequencies_, size, 11 * size);
      const Coded coded = encode(encode_table_, values, 256, false);
      Values back{std::vector<std::uint8_t>(size), std::vector<std::uint16_t>(size)};
      EXPECT_EQ(decode(decode_table_, coded, 256, behind, true, &back), "") << size;
      EXPECT_EQ(values.tokens, back.tokens) << size << " " << behind;
      EXPECT_EQ(values.lane_bits, back.lane_bits) << size << " " << behind;
    }
  }
}

// Damaged words and states: the same values and the same verdict.
TEST_P(TansSimd, JudgesDamageAlike) {
  std::mt19937_64 random(GetParam().number);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t size = 64 + random() % 3000;
    Coded coded = encode(encode_table_, random_values(frequencies_, size, random()), 256, false);
    if (!coded.words.empty() && trial % 2 == 0) {
      coded.words[random() % coded.words.size()] ^= static_cast<std::uint16_t>(1u << random() % 16);
    }
    if (trial % 3 == 0) coded.words.resize(random() % (coded.words.size() + 1));
    if (trial % 5 == 0) coded.states[random() % 448] ^= std::byte{1};
    Values plain{std::vector<std::uint8_t>(size), std::vector<std::uint16_t>(size)};
    Values vector = plain;
    EXPECT_EQ(decode(decode_table_, coded, 256, 64, false, &plain),
              decode(decode_table_, coded, 256, 64, true, &vector));
    EXPECT_EQ(plain.tokens, vector.tokens);
    EXPECT_EQ(plain.lane_bits, vector.lane_bits);
  }
}

std::vector<TableCase> table_cases() {
  std::vector<TableCase> cases;
  for (const std::uint8_t number : {16, 20, 27, 33, 38}) {
    for (const TableKind kind : {TableKind::kTans, TableKind::kHuffman}) {
      cases.push_back({number, kind});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Tables, TansSimd, ::testing::ValuesIn(table_cases()));

}  // namespace
}  // namespace gradwire::internal
