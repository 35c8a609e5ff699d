// Random codecs, types, layouts and values: what encode() and decode() promise, whatever comes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/bounds.h"
#include "support/codec_cases.h"
#include "support/random_case.h"

namespace gradwire::test {
namespace {

constexpr std::uint64_t kMostValues = 50000;
constexpr double kSeconds = 0.7;

class RoundTripTest : public testing::TestWithParam<CodecId> {};

TEST_P(RoundTripTest, ObeysTheBoundAndTheLargestSize) {
  RandomLoop loop(kSeconds);
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), kMostValues, GetParam());
    SCOPED_TRACE(random.describe());
    const Bytes frame = encode_tensors(random.spec, random.tensors);  // into the largest size
    std::vector<Tensor> decoded = like(random.tensors);
    const Status status = decode_into(frame, &decoded);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    std::uint64_t offset = 0;
    for (std::size_t part = 0; part < decoded.size(); ++part) {
      EXPECT_EQ(bound_violation(random.spec, random.tensors[part], decoded[part], offset), "")
          << "part " << part;
      offset += decoded[part].count;
    }
  }
}

TEST_P(RoundTripTest, IsTheSameTwiceAndWithAUsedWorkspace) {
  RandomLoop loop(kSeconds);
  Workspace used;
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), kMostValues, GetParam());
    SCOPED_TRACE(random.describe());
    const Bytes fresh = encode_tensors(random.spec, random.tensors);
    Bytes frame(fresh.size() + (std::size_t{1} << 20), std::byte{0x5A});
    const Result<std::size_t> length =
        encode(random.spec, parts_of(random.tensors), {}, frame, used);
    ASSERT_TRUE(length.ok()) << length.error().to_string();
    ASSERT_EQ(*length, fresh.size());
    EXPECT_TRUE(std::equal(fresh.begin(), fresh.end(), frame.begin()));
    // Nothing behind what the frame could have needed was touched; up to there an encoder may
    // write.
    std::uint64_t values = 0;
    for (const Tensor& tensor : random.tensors) values += tensor.count;
    const auto end = frame.begin() + static_cast<std::ptrdiff_t>(max_encoded_size(
                                         random.spec, random.dtype, values, random.tensors.size()));
    EXPECT_EQ(std::count(end, frame.end(), std::byte{0x5A}), frame.end() - end);

    std::vector<Tensor> by_fresh = like(random.tensors);
    std::vector<Tensor> by_used = like(random.tensors);
    ASSERT_TRUE(decode_into(fresh, &by_fresh).ok());
    ASSERT_TRUE(decode(fresh, views_of(&by_used), used).ok());
    for (std::size_t i = 0; i < by_fresh.size(); ++i)
      EXPECT_EQ(by_fresh[i].bytes, by_used[i].bytes);
  }
}

template <typename T>
void expect_sum(const Tensor& decoded, const Tensor& before, const Tensor& after) {
  for (std::size_t i = 0; i < decoded.count; ++i) {
    const T expected = before.get<T>(i) + static_cast<T>(decoded.value(i));
    const T sum = after.get<T>(i);
    if (std::isnan(expected) ? !std::isnan(sum) : sum != expected) {
      FAIL() << "value " << i << ": " << before.get<T>(i) << " + " << decoded.value(i) << " gave "
             << sum;
    }
  }
}

TEST_P(RoundTripTest, DecodeAddIsDecodeAndAdd) {
  RandomLoop loop(kSeconds);
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), kMostValues, GetParam());
    if (!is_compressible(random.dtype)) continue;
    SCOPED_TRACE(random.describe());
    const DType type = random.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    const Bytes frame = encode_tensors(random.spec, random.tensors);
    std::vector<Tensor> decoded = like(random.tensors);
    ASSERT_TRUE(decode_into(frame, &decoded).ok());
    std::vector<Tensor> before;
    for (const Tensor& tensor : random.tensors) {
      before.push_back(gradient_like(type, tensor.count, loop.seed(), 1.0));
    }
    std::vector<Tensor> after = before;
    Workspace workspace;
    const Status status = decode_add(frame, views_of(&after), workspace);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (type == DType::kFloat64) {
        expect_sum<double>(decoded[i], before[i], after[i]);
      } else {
        expect_sum<float>(decoded[i], before[i], after[i]);
      }
    }
  }
}

TEST_P(RoundTripTest, SpecIsInTheHeaderAndInItsText) {
  RandomLoop loop(kSeconds / 4);
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), 100, GetParam());
    SCOPED_TRACE(random.describe());
    const Result<CodecSpec> parsed = CodecSpec::parse(random.spec.to_string());
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_EQ(*parsed, random.spec) << parsed->to_string();
    const Result<FrameInfo> info = inspect(encode_tensors(random.spec, random.tensors));
    ASSERT_TRUE(info.ok()) << info.error().to_string();
    EXPECT_EQ(info->codec, random.spec) << info->codec.to_string();
    EXPECT_EQ(info->dtype, random.dtype);
  }
}

std::vector<CodecId> all_codec_ids() {
  std::vector<CodecId> ids;
  for (const CodecDescription& codec : codecs()) ids.push_back(codec.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Codecs, RoundTripTest, testing::ValuesIn(all_codec_ids()),
                         [](const auto& tested) {
                           return "codec" + std::to_string(static_cast<int>(tested.param));
                         });

// The checks above can fail: one more unit in the last place than the bound is seen.
TEST(BoundsTest, SeeTheSmallestViolation) {
  Tensor given(DType::kFloat32, 1);
  Tensor decoded = given;
  given.set(0, 1.0f);
  const auto check = [&](const char* spec, float value) {
    decoded.set(0, value);
    return bound_violation(spec_of(spec), given, decoded, 0).empty();
  };
  EXPECT_TRUE(check("near_lossless:step=0.25,group=64", 1.125f));
  EXPECT_FALSE(check("near_lossless:step=0.25,group=64", std::nextafter(1.125f, 2.0f)));
  EXPECT_TRUE(check("near_lossless:mantissa=4", 1 + 0x1p-5f));
  EXPECT_FALSE(check("near_lossless:mantissa=4", 1 + 0x1p-5f + 0x1p-23f));
  EXPECT_TRUE(check("cast:dtype=bf16", 1 - 0x1p-8f));
  EXPECT_FALSE(check("cast:dtype=bf16", 1 - 0x1p-8f - 0x1p-24f));
  EXPECT_TRUE(check("block:bits=8,group=64,rounding=nearest", 1 + 0.5f / 127));
  EXPECT_FALSE(check("block:bits=8,group=64,rounding=nearest", 1 + 0.51f / 127));
  EXPECT_FALSE(check("lossless", 0x1.000002p0f));
  EXPECT_FALSE(check("near_lossless", std::nanf("")));
  EXPECT_FALSE(check("near_lossless:mantissa=4", INFINITY));
  given.set(0, std::nanf(""));
  EXPECT_FALSE(check("block:bits=8", INFINITY));
  given.set(0, -INFINITY);
  EXPECT_FALSE(check("cast:dtype=fp16", INFINITY));
}

// The bound of `step` is half of a step that follows the group's RMS: groups whose values lie on a
// power of two, where a step too large by one octave would show.
TEST(RoundTripBorderTest, StepAtPowersOfTwo) {
  CodecSpec spec = spec_of("near_lossless:step=0.25,group=64");
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const float factor : {1.0f, 0x1.fffffep-1f, 0x1.000002p0f}) {
      Tensor tensor(DType::kFloat32, 64 * 3);
      for (std::size_t i = 0; i < tensor.count; ++i) {
        tensor.set(i, std::ldexp(i % 2 ? factor : -factor, exponent));
      }
      const std::vector<Tensor> given = {tensor};
      const std::vector<Tensor> decoded = round_trip(spec, given);
      ASSERT_EQ(bound_violation(spec, given[0], decoded[0], 0), "") << exponent << " " << factor;
    }
  }
}

}  // namespace
}  // namespace gradwire::test
