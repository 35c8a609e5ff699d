// Quantizer and coder at once against the plain stages one after the other, word for word and bit
// for bit. Where this machine (or GRADWIRE_TARGET) has no such kernels there is nothing to compare.
#include "codec/fused_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/fp_environment.h"
#include "entropy/tables.h"
#include "entropy/tans_decode.h"
#include "entropy/tans_encode.h"
#include "quantize/step_form_ref.h"

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kGroups = 8;

// Groups of different kinds of values; now and then special values, and bits of any kind.
std::vector<std::uint32_t> make_values(std::uint32_t group, int kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  constexpr std::uint32_t kSpecial[] = {0,           0x80000000u, 0x7F800000u, 0xFF800000u,
                                        0x7FC00001u, 1,           0x807FFFFFu, 0x7F7FFFFFu,
                                        0x7FFFFFFFu, 0xFFFFFFFFu, 0x00800000u, 0x007FFFFFu};
  std::vector<std::uint32_t> values(std::size_t{group} * kGroups);
  for (std::uint32_t& value : values) {
    value = std::bit_cast<std::uint32_t>(normal(random));
    if (kind >= 1 && random() % 300 == 0) value = kSpecial[random() % 12];
    if (kind == 2 && random() % 2 == 0) value = static_cast<std::uint32_t>(random());
    if (kind == 3 && random() % 2 == 0) value = kSpecial[random() % 12];
  }
  return values;
}

struct Encoded {
  std::vector<std::uint16_t> words;
  std::vector<std::uint32_t> outliers;  // last value first
  std::vector<std::byte> plane;
  std::vector<std::byte> states;
};

struct Form {
  TableKind kind = TableKind::kTans;
  bool step = false;
  std::uint32_t q_max = 0;
  ExponentParameters exponent;
  Frequencies frequencies{};
  TokenBits lane_bits{};
};

Form step_form(std::uint8_t table, TableKind kind = TableKind::kTans) {
  Form form;
  form.kind = kind;
  form.step = true;
  form.frequencies = *find_builtin_table(kind, table);
  std::uint32_t last = kStepTokenMax;
  while (form.frequencies[last] == 0) --last;
  form.q_max = step_token_last(last);
  form.lane_bits = step_lane_bits(Float32Format::kMantissaBits);
  return form;
}

Form exponent_form(std::uint32_t mantissa, bool rounds, TableKind kind = TableKind::kTans) {
  Form form;
  form.kind = kind;
  form.exponent = {split_mantissa(mantissa), {1, 18}, rounds};
  form.frequencies = *find_builtin_table(kind, 1);
  form.lane_bits = exponent_lane_bits(form.exponent.split);
  return form;
}

std::vector<std::byte> states_of(const TansEncodeLanes& lanes) {
  std::vector<std::byte> bytes(kLaneStateBytes * kMaxLanes);
  write_lane_states(lanes, kMaxLanes, bytes.data());
  return bytes;
}

Encoded encode_plain(const Form& form, const std::vector<std::uint32_t>& values,
                     std::uint32_t group, const std::vector<std::int16_t>& scales) {
  TansEncodeTable table;
  make_encode_table(form.kind, form.frequencies, form.lane_bits, &table);
  const MantissaSplit split = form.exponent.split;
  Encoded result;
  result.words.resize(values.size() + 1);
  result.plane.resize(values.size() * split.plane_bytes);
  std::vector<std::uint8_t> tokens(group);
  std::vector<std::uint16_t> lane_bits(group);
  TansEncodeLanes lanes{};
  std::byte* words = reinterpret_cast<std::byte*>(result.words.data());
  for (std::size_t g = kGroups; g-- > 0;) {
    const std::uint32_t* const first = values.data() + g * group;
    if (form.step) {
      quantize_step_ref(first, group, scales[g], form.q_max, tokens.data(), lane_bits.data());
    } else {
      std::vector<std::uint32_t> source(first, first + group);
      if (form.exponent.rounds)
        round_mantissa_ref<Float32Format>(source.data(), group, split.mantissa);
      quantize_exponent_ref<Float32Format>(source.data(), group, scales[g], split,
                                           form.exponent.range, tokens.data(), lane_bits.data(),
                                           result.plane.data() + g * group * split.plane_bytes);
    }
    for (std::size_t i = group; i-- > 0;) {
      if (tokens[i] == kTokenEscape) result.outliers.push_back(first[i]);
    }
    words =
        encode_group_ref(table, kMaxLanes, tokens.data(), lane_bits.data(), group, &lanes, words);
  }
  result.words.resize(
      static_cast<std::size_t>(words - reinterpret_cast<std::byte*>(result.words.data())) /
      kWordBytes);
  result.states = states_of(lanes);
  return result;
}

Encoded encode_at_once(const Form& form, const std::vector<std::uint32_t>& values,
                       std::uint32_t group, const std::vector<std::int16_t>& scales) {
  TansEncodeTable table;
  make_encode_table(form.kind, form.frequencies, form.lane_bits, &table);
  Encoded result;
  result.words.resize(values.size() + kEncodeSlackWords);
  result.plane.resize(values.size() * form.exponent.split.plane_bytes);
  result.outliers.resize(values.size());
  TansVectorEncoder encoder;
  start_vector_encoder(table, &encoder);
  auto* const words = reinterpret_cast<std::byte*>(result.words.data());
  FusedEncodeOut out{words, result.outliers.data()};
  const FusedGroups groups{scales.data(), group, kGroups};
  if (form.step) {
    encode_step_groups(values.data(), groups, form.q_max, &encoder, &out);
  } else {
    encode_exponent_groups(values.data(), groups, form.exponent, &encoder, result.plane.data(),
                           &out);
  }
  result.words.resize(static_cast<std::size_t>(out.words - words) / kWordBytes);
  result.outliers.resize(static_cast<std::size_t>(out.outliers - result.outliers.data()));
  TansEncodeLanes lanes{};
  finish_vector_encoder(encoder, &lanes);
  result.states = states_of(lanes);
  return result;
}

// Values as the plain stages decode them, escapes included.
std::vector<std::uint32_t> decode_plain(const Form& form, const Encoded& encoded,
                                        std::uint32_t group, std::size_t count,
                                        const std::vector<std::int16_t>& scales) {
  TansDecodeTable table;
  make_decode_table(form.kind, form.frequencies, form.lane_bits, &table);
  TansDecoder decoder;
  EXPECT_EQ(
      start_decoder(encoded.states, kMaxLanes, std::as_bytes(std::span(encoded.words)), &decoder),
      nullptr);
  std::vector<std::uint32_t> values(count);
  std::vector<std::uint8_t> tokens(group);
  std::vector<std::uint16_t> lane_bits(group);
  auto outlier = encoded.outliers.rbegin();
  const MantissaSplit split = form.exponent.split;
  for (std::size_t g = 0; g < kGroups; ++g) {
    decode_group_ref(table, &decoder, tokens.data(), lane_bits.data(), group);
    std::uint32_t* const first = values.data() + g * group;
    const bool good =
        form.step ? dequantize_step_ref(tokens.data(), lane_bits.data(), group, scales[g], first)
                  : dequantize_exponent_ref<Float32Format>(
                        tokens.data(), lane_bits.data(),
                        encoded.plane.data() + g * group * split.plane_bytes, group, scales[g],
                        split, first);
    EXPECT_TRUE(good);
    for (std::size_t i = 0; i < group; ++i) {
      if (tokens[i] == kTokenEscape) first[i] = *outlier++;
    }
  }
  EXPECT_EQ(finish_decoder(decoder), nullptr);
  return values;
}

struct AtOnce {
  std::vector<std::uint32_t> values;
  std::uint32_t groups = 0;
  OutlierCursor outliers;
};

// `start`: what lies there before.
AtOnce decode_at_once(const Form& form, const Encoded& encoded, std::uint32_t group,
                      std::size_t count, const std::vector<std::int16_t>& scales, bool add,
                      const std::vector<std::uint32_t>& start = {},
                      std::size_t outliers_missing = 0) {
  TansDecodeTable table;
  make_decode_table(form.kind, form.frequencies, form.lane_bits, &table);
  // Readable bytes behind the words, as the scales of a block are.
  std::vector<std::byte> words(2 * encoded.words.size() + 64);
  std::memcpy(words.data(), encoded.words.data(), 2 * encoded.words.size());
  TansDecoder decoder;
  EXPECT_EQ(start_decoder(encoded.states, kMaxLanes,
                          std::span(words).first(2 * encoded.words.size()), &decoder),
            nullptr);
  TansVectorDecoder vector;
  start_vector_decoder(table, decoder, words.data() + words.size(), &vector);
  const std::vector<std::uint32_t> outliers(encoded.outliers.rbegin(), encoded.outliers.rend());
  AtOnce result;
  result.outliers = {reinterpret_cast<const std::byte*>(outliers.data()),
                     outliers.size() - outliers_missing};
  result.values = start;
  result.values.resize(count);
  const FusedGroups groups{scales.data(), group, kGroups};
  result.groups = form.step ? decode_step_groups(groups, &decoder, &vector, &result.outliers, add,
                                                 result.values.data())
                            : decode_exponent_groups(groups, form.exponent.split,
                                                     encoded.plane.data(), &decoder, &vector,
                                                     &result.outliers, add, result.values.data());
  return result;
}

void check(const Form& form, std::uint32_t group, std::int32_t scale, int kind,
           std::uint64_t seed) {
  SCOPED_TRACE("group " + std::to_string(group) + " scale " + std::to_string(scale) + " kind " +
               std::to_string(kind) + " seed " + std::to_string(seed) + " mantissa " +
               std::to_string(form.exponent.split.mantissa));
  std::vector<std::uint32_t> values = make_values(group, kind, seed);
  const std::int32_t center = form.step ? 0 : 127;
  for (std::uint32_t& value : values) {
    // Moves the values to the scale; special ones stay.
    const auto moved = std::bit_cast<float>(value) *
                       std::exp2(static_cast<float>(std::clamp(scale - center - 4, -120, 110)));
    if (kind < 3) value = std::bit_cast<std::uint32_t>(moved);
  }
  if (!form.step && !form.exponent.rounds) {
    const std::uint32_t keep = ~((1u << (23 - form.exponent.split.mantissa)) - 1);
    for (std::uint32_t& value : values) {
      if ((value & 0x7F800000u) != 0x7F800000u) value &= keep;
    }
  }
  std::vector<std::int16_t> scales(kGroups);
  for (std::uint32_t g = 0; g < kGroups; ++g) scales[g] = static_cast<std::int16_t>(scale - g % 2);

  const Encoded plain = encode_plain(form, values, group, scales);
  const Encoded fused = encode_at_once(form, values, group, scales);
  ASSERT_EQ(plain.words, fused.words);
  ASSERT_EQ(plain.states, fused.states);
  ASSERT_EQ(plain.outliers, fused.outliers);
  ASSERT_EQ(plain.plane, fused.plane);

  if (!form.step && scale < 40) return;  // the decoder does not take these
  const std::vector<std::uint32_t> expected =
      decode_plain(form, plain, group, values.size(), scales);
  const AtOnce stored = decode_at_once(form, plain, group, values.size(), scales, false);
  ASSERT_FALSE(stored.outliers.missing);
  const std::size_t done = std::size_t{stored.groups} * group;
  if (plain.words.size() >= group) {
    ASSERT_GT(done, 0u);
  }
  for (std::size_t i = 0; i < done; ++i) ASSERT_EQ(stored.values[i], expected[i]) << i;

  std::vector<std::uint32_t> sums(values.size());
  std::mt19937_64 random(seed);
  for (std::uint32_t& sum : sums) {
    sum = std::bit_cast<std::uint32_t>(static_cast<float>(random() % 64) * -0.125f);
  }
  const AtOnce added = decode_at_once(form, plain, group, values.size(), scales, true, sums);
  ASSERT_EQ(added.groups, stored.groups);
  for (std::size_t i = 0; i < done; ++i) {
    const float sum = std::bit_cast<float>(sums[i]) + std::bit_cast<float>(expected[i]);
    if (std::isnan(sum)) {
      ASSERT_TRUE(std::isnan(std::bit_cast<float>(added.values[i]))) << i;
    } else {
      ASSERT_EQ(added.values[i], std::bit_cast<std::uint32_t>(sum)) << i;
    }
  }
  if (!plain.outliers.empty() && stored.outliers.left == 0) {
    EXPECT_TRUE(
        decode_at_once(form, plain, group, values.size(), scales, false, {}, 1).outliers.missing);
  }
}

class FusedGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_fused_groups()) GTEST_SKIP() << "no such kernels on this target";
  }
  const FpEnvironment environment_;
};

TEST_F(FusedGroupsTest, StepForm) {
  for (const Form& form :
       {step_form(16), step_form(17), step_form(28), step_form(36),
        step_form(16, TableKind::kHuffman), step_form(28, TableKind::kHuffman)}) {
    for (const std::uint32_t group : {64u, 256u, 4096u}) {
      for (const std::int32_t scale : {-123, -20, 0, 60, 112}) {
        ASSERT_TRUE(fused_step_scale(scale));
        for (int kind = 0; kind < 4; ++kind) {
          check(form, group, scale, kind, group + static_cast<std::uint64_t>(kind));
        }
      }
    }
  }
  EXPECT_FALSE(fused_step_scale(-125));
  EXPECT_FALSE(fused_step_scale(113));
}

TEST_F(FusedGroupsTest, PrefixCodeInExponentForm) {
  for (const std::uint32_t mantissa : {6u, 16u, 23u}) {
    for (const bool rounds : {false, true}) {
      if (rounds && mantissa > 16) continue;
      const Form form = exponent_form(mantissa, rounds, TableKind::kHuffman);
      for (int kind = 0; kind < 4; ++kind) check(form, 256, 127, kind, 3);
    }
  }
}

TEST_F(FusedGroupsTest, ExponentForm) {
  for (const bool rounds : {false, true}) {
    for (const std::uint32_t mantissa : {2u, 6u, 8u, 9u, 16u, 23u}) {
      if (rounds && mantissa > 16) continue;
      const Form form = exponent_form(mantissa, rounds);
      for (const std::uint32_t group : {64u, 256u}) {
        for (const std::int32_t top : {21, 60, 127, 131, 254}) {
          ASSERT_TRUE(fused_exponent_scale(top - 1, form.exponent.range));
          for (int kind = 0; kind < 4; ++kind) {
            check(form, group, top, kind, group + static_cast<std::uint64_t>(kind));
          }
        }
      }
    }
  }
  EXPECT_FALSE(fused_exponent_scale(19, {1, 18}));
  EXPECT_FALSE(fused_exponent_scale(255, {1, 18}));
  EXPECT_FALSE(fused_exponent_scale(29));
  EXPECT_TRUE(fused_exponent_scale(30));
  EXPECT_FALSE(fused_exponent_scale(255));
}

}  // namespace
}  // namespace gradwire::internal
