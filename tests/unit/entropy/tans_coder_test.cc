#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "entropy/tables.h"
#include "entropy/tans_decode.h"
#include "entropy/tans_encode.h"
#include "quantize/float_format.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kLaneCounts[] = {1, 16, 32, 64};
constexpr std::uint32_t kSizes[] = {1,   2,   15,  16,   17,   63,   64,   65,
                                    255, 256, 257, 1000, 4095, 4096, 4097, 20011};

struct Stream {
  std::uint32_t lanes = 0;
  std::uint32_t group = 0;
  std::vector<std::uint8_t> tokens;
  std::vector<std::uint16_t> lane_bits;
  std::vector<std::byte> states;
  std::vector<std::byte> words;
};

// Tokens with the frequencies of the table; level of near_lossless.
Stream make_stream(const Frequencies& frequencies, std::uint32_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Stream stream;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t slot = static_cast<std::uint32_t>(random() % 128);
    std::uint8_t token = 0;
    while (slot >= frequencies[token]) slot -= frequencies[token++];
    stream.tokens.push_back(token);
    const std::uint32_t keep = 0xFFFF0000u >> step_lane_bits(Float32Format::kMantissaBits)[token];
    stream.lane_bits.push_back(static_cast<std::uint16_t>(random() & keep));
  }
  return stream;
}

void encode(const Frequencies& frequencies, std::uint32_t lanes, std::uint32_t group,
            Stream* stream) {
  stream->lanes = lanes;
  stream->group = group;
  TansEncodeTable table;
  make_encode_table(TableKind::kTans, frequencies, step_lane_bits(Float32Format::kMantissaBits),
                    &table);
  TansEncodeLanes state{};
  std::vector<std::byte> words(kWordBytes * (stream->tokens.size() + 1));
  std::byte* end = words.data();
  for (std::size_t last = stream->tokens.size(); last > 0;) {
    const std::size_t first = (last - 1) / group * group;
    end = encode_group_ref(table, lanes, stream->tokens.data() + first,
                           stream->lane_bits.data() + first,
                           static_cast<std::uint32_t>(last - first), &state, end);
    last = first;
  }
  stream->states.resize(kLaneStateBytes * lanes);
  write_lane_states(state, lanes, stream->states.data());
  stream->words.resize(static_cast<std::size_t>(end - words.data()));
  if (!stream->words.empty()) {
    std::memcpy(stream->words.data(), words.data(), stream->words.size());
  }
}

struct Decoded {
  std::string problem;
  std::vector<std::uint8_t> tokens;
  std::vector<std::uint16_t> lane_bits;
};

Decoded decode(const Frequencies& frequencies, const Stream& stream) {
  TansDecodeTable table;
  make_decode_table(TableKind::kTans, frequencies, step_lane_bits(Float32Format::kMantissaBits),
                    &table);
  Decoded result;
  result.tokens.resize(stream.tokens.size());
  result.lane_bits.resize(stream.tokens.size());
  TansDecoder decoder;
  if (const char* problem = start_decoder(stream.states, stream.lanes, stream.words, &decoder)) {
    result.problem = problem;
    return result;
  }
  for (std::size_t first = 0; first < stream.tokens.size(); first += stream.group) {
    const std::size_t count = std::min<std::size_t>(stream.group, stream.tokens.size() - first);
    decode_group_ref(table, &decoder, result.tokens.data() + first, result.lane_bits.data() + first,
                     static_cast<std::uint32_t>(count));
  }
  if (const char* problem = finish_decoder(decoder)) result.problem = problem;
  return result;
}

// Section 5 of docs/format.md bit by bit.
class ModelDecoder {
 public:
  ModelDecoder(const Frequencies& frequencies, const Stream& stream)
      : lanes_(stream.lanes), words_(stream.words.size() / 2), x_(lanes_), pos_(lanes_) {
    std::memcpy(words_.data(), stream.words.data(), stream.words.size());
    for (auto& n : n_) n.resize(lanes_);
    for (std::size_t i = 0; i < 3 * lanes_; ++i) {
      std::memcpy(&n_[i / lanes_][i % lanes_], stream.states.data() + 2 * i, 2);
    }
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      x_[lane] = std::to_integer<unsigned>(stream.states[6 * lanes_ + lane]);
      pos_[lane] = std::to_integer<unsigned>(stream.states[7 * lanes_ + lane]);
    }
    make_decode_table(TableKind::kTans, frequencies, step_lane_bits(Float32Format::kMantissaBits),
                      &table_);
  }

  // A row of `count` values; false when a word is missing.
  bool row(std::size_t count, std::uint8_t* tokens, std::uint16_t* lane_bits) {
    for (std::size_t half = 0; half < lanes_; half += 32) {
      std::vector<std::size_t> refilling;
      for (std::size_t lane = half; lane < std::min<std::size_t>(half + 32, lanes_); ++lane) {
        const std::size_t value = row_value(lane);
        if (value >= count) continue;
        const TansDecodeEntry& entry = table_.states[x_[lane]];
        const unsigned r = step_lane_bits(Float32Format::kMantissaBits)[entry.token];
        x_[lane] = entry.next + read(lane, 0, entry.code_bits);
        tokens[value] = entry.token;
        lane_bits[value] = static_cast<std::uint16_t>(read(lane, entry.code_bits, r) << (16 - r));
        pos_[lane] += entry.code_bits + r;
        if (pos_[lane] >= 16) refilling.push_back(lane);
      }
      if (refilling.size() > words_.size()) return false;
      const std::size_t first = words_.size() - refilling.size();
      for (std::size_t i = 0; i < refilling.size(); ++i) {
        const std::size_t lane = refilling[i];
        pos_[lane] -= 16;
        n_[0][lane] = n_[1][lane];
        n_[1][lane] = n_[2][lane];
        n_[2][lane] = words_[first + i];
      }
      words_.resize(first);
    }
    return true;
  }

  bool at_end() const {
    bool end = words_.empty();
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      end = end && x_[lane] == 0 && pos_[lane] == 0 && n_[0][lane] == 0 && n_[1][lane] == 0 &&
            n_[2][lane] == 0;
    }
    return end;
  }

 private:
  std::size_t row_value(std::size_t lane) const {
    if (lanes_ == 64) return 32 * (lane / 32) + ((lane % 32) / 2) + 16 * (lane % 2);
    if (lanes_ == 32) return lane / 2 + 16 * (lane % 2);
    if (lanes_ == 16) return lane / 2 + 8 * (lane % 2);
    return 0;
  }
  unsigned read(std::size_t lane, unsigned skip, unsigned bits) const {
    unsigned value = 0;
    for (unsigned i = 0; i < bits; ++i) {
      const unsigned at = pos_[lane] + skip + i;
      value = value * 2 + ((n_[at / 16][lane] >> (15 - at % 16)) & 1u);
    }
    return value;
  }

  const std::size_t lanes_;
  std::vector<std::uint16_t> words_;
  std::vector<std::uint16_t> n_[3];
  std::vector<unsigned> x_;
  std::vector<unsigned> pos_;
  TansDecodeTable table_;
};

TEST(TansCoder, LanesCarryTheValuesOfTheFormat) {
  EXPECT_EQ(lane_value(64, 0), 0u);
  EXPECT_EQ(lane_value(64, 1), 16u);
  EXPECT_EQ(lane_value(64, 31), 31u);
  EXPECT_EQ(lane_value(64, 34), 33u);
  EXPECT_EQ(lane_value(32, 3), 17u);
  EXPECT_EQ(lane_value(16, 3), 9u);
  EXPECT_EQ(lane_value(1, 0), 0u);
}

TEST(TansCoder, RoundTripForEveryTableLaneCountAndSize) {
  std::uint64_t seed = 1000;
  for (const BuiltinTable& builtin : kBuiltinTables) {
    if (builtin.number == 1) continue;  // not with these lane bits
    for (const std::uint32_t lanes : kLaneCounts) {
      for (const std::uint32_t size : kSizes) {
        SCOPED_TRACE("table " + std::to_string(builtin.number) + " lanes " + std::to_string(lanes) +
                     " size " + std::to_string(size) + " seed " + std::to_string(seed));
        Stream stream = make_stream(builtin.frequencies, size, seed++);
        encode(builtin.frequencies, lanes, seed % 2 == 0 ? 256 : 64, &stream);
        const Decoded decoded = decode(builtin.frequencies, stream);
        ASSERT_EQ(decoded.problem, "");
        ASSERT_EQ(decoded.tokens, stream.tokens);
        ASSERT_EQ(decoded.lane_bits, stream.lane_bits);
      }
    }
  }
}

TEST(TansCoder, ModelReadsWhatTheEncoderWrites) {
  const Frequencies& frequencies = *find_builtin_table(TableKind::kTans, 17);
  for (const std::uint32_t lanes : kLaneCounts) {
    for (const std::uint32_t size : kSizes) {
      SCOPED_TRACE("lanes " + std::to_string(lanes) + " size " + std::to_string(size) + " seed 7");
      Stream stream = make_stream(frequencies, size, 7);
      encode(frequencies, lanes, 256, &stream);
      ModelDecoder model(frequencies, stream);
      std::vector<std::uint8_t> tokens(size);
      std::vector<std::uint16_t> lane_bits(size);
      for (std::uint32_t group = 0; group < size; group += 256) {
        const std::uint32_t end = std::min(size, group + 256);
        for (std::uint32_t row = group; row < end; row += lanes) {
          ASSERT_TRUE(
              model.row(std::min(lanes, end - row), tokens.data() + row, lane_bits.data() + row));
        }
      }
      EXPECT_TRUE(model.at_end());
      EXPECT_EQ(tokens, stream.tokens);
      EXPECT_EQ(lane_bits, stream.lane_bits);
    }
  }
}

TEST(TansCoder, OneTokenCostsNothing) {
  Frequencies frequencies{};
  frequencies[0] = 128;
  Stream stream;
  stream.tokens.assign(10000, 0);
  stream.lane_bits.assign(10000, 0);
  encode(frequencies, 64, 256, &stream);
  EXPECT_TRUE(stream.words.empty());
  EXPECT_EQ(decode(frequencies, stream).problem, "");
}

TEST(TansCoder, FindsMissingAndSuperfluousWords) {
  const Frequencies& frequencies = *find_builtin_table(TableKind::kTans, 20);
  for (const std::uint32_t lanes : kLaneCounts) {
    Stream stream = make_stream(frequencies, 3000, 3);
    encode(frequencies, lanes, 256, &stream);
    Stream shorter = stream;
    shorter.words.erase(shorter.words.begin(), shorter.words.begin() + 2);
    EXPECT_EQ(decode(frequencies, shorter).problem, "the words end too early") << lanes;
    Stream longer = stream;
    longer.words.insert(longer.words.begin(), 2, std::byte{0});
    EXPECT_EQ(decode(frequencies, longer).problem, "words are left over") << lanes;
    Stream none = stream;
    none.words.clear();
    EXPECT_NE(decode(frequencies, none).problem, "") << lanes;
  }
}

TEST(TansCoder, ChecksLaneStates) {
  const Frequencies& frequencies = *find_builtin_table(TableKind::kTans, 20);
  Stream stream = make_stream(frequencies, 3000, 4);
  encode(frequencies, 16, 256, &stream);
  Stream wrong = stream;
  wrong.states[6 * 16 + 3] = std::byte{128};
  EXPECT_EQ(decode(frequencies, wrong).problem, "a lane state is above 127");
  wrong = stream;
  wrong.states[7 * 16 + 15] = std::byte{16};
  EXPECT_EQ(decode(frequencies, wrong).problem, "a lane position is above 15");
  // A bit of a word that nobody reads is still looked at in the end.
  wrong = stream;
  wrong.words[1] ^= std::byte{0x80};
  EXPECT_NE(decode(frequencies, wrong).problem, "");
}

TEST(TansCoder, AnyBytesAreSafe) {
  std::mt19937_64 random(99);
  SCOPED_TRACE("seed 99");
  for (int round = 0; round < 4000; ++round) {
    const Frequencies& frequencies = kBuiltinTables[1 + random() % 23].frequencies;
    Stream stream;
    stream.lanes = kLaneCounts[random() % 4];
    stream.group = 64u << (random() % 3);
    stream.tokens.resize(1 + random() % 2000);
    stream.states.resize(kLaneStateBytes * stream.lanes);
    stream.words.resize(kWordBytes * (random() % 600));
    for (std::byte& byte : stream.states) byte = static_cast<std::byte>(random() & 15);
    for (std::byte& byte : stream.words) byte = static_cast<std::byte>(random());
    const Decoded decoded = decode(frequencies, stream);
    for (std::size_t i = 0; i < decoded.tokens.size(); ++i) {
      ASSERT_LT(decoded.tokens[i], kTokenCount);
      ASSERT_GT(frequencies[decoded.tokens[i]], 0);
    }
    EXPECT_NE(decoded.problem, "");
  }
}

}  // namespace
}  // namespace gradwire::internal
