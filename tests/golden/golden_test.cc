// Frames with known values: they are decoded to them, made from them byte for byte, and refused
// with the right error once they are damaged. tools/make_golden.py made them without the library.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "gradwire/codec.h"
#include "support/frames.h"
#include "support/golden_files.h"
#include "support/sha256.h"

namespace gradwire::test {
namespace {

std::vector<Part> parts_of(const GoldenFrame& golden, std::span<const std::byte> values) {
  std::vector<std::uint64_t> counts;
  for (const GoldenPart& part : golden.parts) counts.push_back(part.values);
  std::vector<Part> parts = make_parts(values, golden.dtype, counts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].tensor = golden.parts[i].tensor;
    parts[i].first_index = golden.parts[i].first_index;
  }
  return parts;
}

class GoldenFrameTest : public testing::TestWithParam<GoldenFrame> {};

TEST_P(GoldenFrameTest, DecodesToTheKnownValues) {
  const Bytes frame = GetParam().bytes();
  ASSERT_EQ(sha256(frame), GetParam().frame_sha256);
  Workspace workspace;
  const Result<Bytes> values = decode_frame(frame, workspace);
  ASSERT_TRUE(values.ok()) << values.error().to_string();
  EXPECT_EQ(sha256(*values), GetParam().values_sha256);
  EXPECT_TRUE(verify(frame).ok());
}

TEST_P(GoldenFrameTest, InspectTellsWhatWasEncoded) {
  const GoldenFrame& golden = GetParam();
  const Result<FrameInfo> info = inspect(golden.bytes());
  ASSERT_TRUE(info.ok()) << info.error().to_string();
  const Result<CodecSpec> spec = CodecSpec::parse(golden.codec);
  ASSERT_TRUE(spec.ok()) << spec.error().to_string();
  EXPECT_EQ(info->codec, *spec) << info->codec.to_string();
  EXPECT_EQ(info->metadata, golden.metadata);
  EXPECT_EQ(info->value_count, golden.value_count());
  ASSERT_EQ(info->part_counts.size(), golden.parts.size());
  for (std::size_t i = 0; i < golden.parts.size(); ++i) {
    EXPECT_EQ(info->part_counts[i], golden.parts[i].values);
  }
  EXPECT_EQ(info->context.op, golden.context.op);
  EXPECT_EQ(info->context.group_id, golden.context.group_id);
  EXPECT_EQ(info->context.sequence, golden.context.sequence);
  EXPECT_EQ(info->context.first_value, golden.context.first_value);
}

TEST_P(GoldenFrameTest, IsWhatTheEncoderMakes) {
  const GoldenFrame& golden = GetParam();
  // An empty frame has no part whose type encode() could take from.
  if (golden.decode_only || (golden.parts.empty() && golden.dtype != DType::kFloat32)) return;
  const Result<CodecSpec> spec = CodecSpec::parse(golden.codec);
  ASSERT_TRUE(spec.ok()) << spec.error().to_string();
  const Bytes values = golden.values();
  EncodeOptions options;
  options.context = golden.context;
  options.metadata = golden.metadata;
  Workspace workspace;
  const Result<Bytes> frame = encode_frame(*spec, parts_of(golden, values), options, workspace);
  ASSERT_TRUE(frame.ok()) << frame.error().to_string();
  const Bytes expected = golden.bytes();
  ASSERT_EQ(frame->size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ((*frame)[i], expected[i]) << "first difference at byte " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFrameTest, testing::ValuesIn(golden_frames()),
                         [](const auto& tested) { return test_name(tested.param.file); });

class GoldenErrorTest : public testing::TestWithParam<GoldenError> {};

TEST_P(GoldenErrorTest, IsRefusedWithItsError) {
  const Bytes frame = GetParam().bytes();
  Workspace workspace;
  const Result<Bytes> values = decode_frame(frame, workspace);
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(error_name(values.error().code), GetParam().error) << values.error().to_string();
  EXPECT_FALSE(values.error().message.empty());
  EXPECT_EQ(values.error().message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenErrorTest, testing::ValuesIn(golden_errors()),
                         [](const auto& tested) { return test_name(tested.param.file); });

TEST(GoldenSetTest, HasEveryCodecAndEveryErrorOfBytes) {
  std::set<std::string> codecs_seen;
  for (const GoldenFrame& golden : golden_frames()) {
    codecs_seen.insert(golden.codec.substr(0, golden.codec.find(':')));
  }
  for (const CodecDescription& codec : codecs()) {
    EXPECT_THAT(codecs_seen, testing::Contains(std::string(codec.name)));
  }
  std::set<std::string> errors_seen;
  for (const GoldenError& golden : golden_errors()) errors_seen.insert(golden.error);
  for (int number = static_cast<int>(ErrorCode::kTruncated);
       number <= static_cast<int>(ErrorCode::kCorruptBlock); ++number) {
    EXPECT_THAT(errors_seen,
                testing::Contains(std::string(error_name(static_cast<ErrorCode>(number)))));
  }
  EXPECT_GE(golden_frames().size(), 60u);
}

}  // namespace
}  // namespace gradwire::test
