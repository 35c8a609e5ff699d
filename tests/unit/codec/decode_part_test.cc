// decode_part(): one part of a frame alone, with the blocks that hold it and no others.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/allocation_counter.h"
#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::CodecCase;
using test::Tensor;

// Parts that fill blocks of 4096 values, share them, span them, and have no values.
const std::vector<std::uint64_t> kCounts = {0, 4096, 1, 0, 63, 9000, 200, 200, 0, 12288, 5, 0};

std::vector<Tensor> gradients(DType dtype, const std::vector<std::uint64_t>& counts) {
  std::vector<Tensor> tensors;
  for (const std::uint64_t count : counts) {
    tensors.push_back(test::gradient_like(dtype, count, 31 + tensors.size()));
  }
  return tensors;
}

Tensor empty_like(const Tensor& tensor) { return test::like({tensor})[0]; }

class DecodePart : public ::testing::TestWithParam<CodecCase> {};

INSTANTIATE_TEST_SUITE_P(Registry, DecodePart, ::testing::ValuesIn(test::codec_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

TEST_P(DecodePart, GivesWhatDecodeGives) {
  CodecSpec spec = test::spec_of(GetParam().spec);
  spec.block_values = 4096;
  const std::vector<Tensor> tensors = gradients(GetParam().dtype, kCounts);
  const Bytes frame = test::encode_tensors(spec, tensors);
  std::vector<Tensor> decoded = test::like(tensors);
  ASSERT_TRUE(test::decode_into(frame, &decoded).ok());
  for (const unsigned threads : {1u, 3u}) {
    Workspace workspace;
    ASSERT_TRUE(workspace.set_threads(threads).ok());
    for (std::uint32_t index = 0; index < tensors.size(); ++index) {
      Tensor part = empty_like(tensors[index]);
      const Status status = decode_part(frame, index, part.view(), workspace);
      ASSERT_TRUE(status.ok()) << index << ": " << status.error().to_string();
      EXPECT_EQ(part.bytes, decoded[index].bytes) << index;
    }
  }
}

TEST(DecodePartOfFrame, ReadsOnlyTheBlocksThatHoldThePart) {
  CodecSpec spec = test::spec_of("lossless:block=4096");
  const std::vector<Tensor> tensors = gradients(DType::kFloat32, {4096, 4000, 300, 8000});
  const Bytes frame = test::encode_tensors(spec, tensors);
  const Result<FrameInfo> info = inspect(frame);
  ASSERT_TRUE(info.ok());
  ASSERT_EQ(info->blocks.size(), 5u);
  // Blocks of each part: 0; 1; 1, 2; 2, 3, 4 (values 8396 to 16395).
  const std::vector<std::vector<std::size_t>> held = {{0}, {1}, {1, 2}, {2, 3, 4}};
  std::size_t begin = info->header_length;
  for (std::size_t block = 0; block < info->blocks.size(); ++block) {
    Bytes damaged = frame;
    damaged[begin + info->blocks[block].length / 2] ^= std::byte{4};
    begin += info->blocks[block].length;
    for (std::uint32_t index = 0; index < tensors.size(); ++index) {
      SCOPED_TRACE("block " + std::to_string(block) + ", part " + std::to_string(index));
      Tensor part = empty_like(tensors[index]);
      Workspace workspace;
      const Status status = decode_part(damaged, index, part.view(), workspace);
      const auto& blocks = held[index];
      if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
        ASSERT_TRUE(status.ok()) << status.error().to_string();
        EXPECT_EQ(part.bytes, tensors[index].bytes);
      } else {
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().code, ErrorCode::kBlockChecksum);
        EXPECT_EQ(status.error().theirs, std::to_string(block));
      }
    }
  }
}

TEST(DecodePartOfFrame, RefusesWhatDoesNotFit) {
  const std::vector<Tensor> tensors = gradients(DType::kFloat32, {10, 20});
  const Bytes frame = test::encode_tensors(test::spec_of("near_lossless"), tensors);
  Workspace workspace;
  Tensor part(DType::kFloat32, 20);
  const auto error_of = [&](std::span<const std::byte> bytes, std::uint32_t index,
                            const TensorView& view) {
    const Status status = decode_part(bytes, index, view, workspace);
    EXPECT_FALSE(status.ok());
    return status.ok() ? Error{} : status.error();
  };
  for (const std::uint32_t index : {2u, 3u, ~0u}) {
    const Error error = error_of(frame, index, part.view());
    EXPECT_EQ(error.code, ErrorCode::kOutOfRange);
    EXPECT_EQ(error.field, "index");
    EXPECT_EQ(error.mine, std::to_string(index));
    EXPECT_NE(error.message.find("2 parts"), std::string::npos) << error.message;
  }
  EXPECT_EQ(error_of(frame, 0, part.view()).code, ErrorCode::kShapeMismatch);
  Tensor wide(DType::kFloat64, 20);
  EXPECT_EQ(error_of(frame, 1, wide.view()).field, "dtype");
  EXPECT_EQ(error_of(frame, 1, {nullptr, 20, DType::kFloat32}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of(std::span(frame).first(frame.size() - 1), 1, part.view()).code,
            ErrorCode::kTruncated);
  Bytes damaged = frame;
  damaged[130] ^= std::byte{1};  // part table
  EXPECT_EQ(error_of(damaged, 1, part.view()).code, ErrorCode::kHeaderChecksum);
  const Bytes empty = test::encode_tensors(test::spec_of("lossless"), {});
  EXPECT_EQ(error_of(empty, 0, part.view()).code, ErrorCode::kOutOfRange);
  ASSERT_TRUE(decode_part(frame, 1, part.view(), workspace).ok());
}

TEST(DecodePartOfFrame, AllocatesNothingOnceWarm) {
  const std::vector<Tensor> tensors = gradients(DType::kFloat32, {5000, 70, 9000});
  const Bytes frame = test::encode_tensors(test::spec_of("near_lossless:block=4096"), tensors);
  Workspace workspace;
  Tensor part = empty_like(tensors[1]);
  ASSERT_TRUE(decode_part(frame, 1, part.view(), workspace).ok());
  test::reset_allocations();
  ASSERT_TRUE(decode_part(frame, 1, part.view(), workspace).ok());
  EXPECT_EQ(test::allocations().calls, 0u);
}

}  // namespace
}  // namespace gradwire
