// Frames on several threads: same bytes, values and errors as on one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <utility>
#include <vector>

#include "support/allocation_counter.h"
#include "support/codec_cases.h"
#include "support/random_case.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::CodecCase;
using test::Tensor;

// Encodes in a workspace with threads.
Bytes encode_with(Workspace& workspace, const CodecSpec& spec, const std::vector<Tensor>& tensors,
                  EncodeStats* stats = nullptr) {
  return test::encode_tensors(spec, tensors, {}, stats, &workspace);
}

class Threads : public ::testing::TestWithParam<CodecCase> {
 protected:
  // More than kLeastBytesOfThread for each of eight threads, in blocks that end inside parts.
  void SetUp() override {
    spec_ = test::spec_of(GetParam().spec);
    spec_.block_values = 16384;
    const std::uint64_t values = (std::uint64_t{9} << 18) / dtype_size(GetParam().dtype);
    for (const std::uint64_t count :
         {values / 2 + 77, std::uint64_t{0}, values / 3, std::uint64_t{1}, values / 4 + 3}) {
      tensors_.push_back(test::gradient_like(GetParam().dtype, count, count));
      values_ += count;
    }
    parts_ = test::parts_of(tensors_);
    frame_ = test::encode_tensors(spec_, tensors_, {}, &stats_);
  }

  CodecSpec spec_;
  std::vector<Tensor> tensors_;
  std::vector<Part> parts_;
  std::uint64_t values_ = 0;
  Bytes frame_;
  EncodeStats stats_;
};

INSTANTIATE_TEST_SUITE_P(Registry, Threads, ::testing::ValuesIn(test::codec_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

TEST_P(Threads, SameBytesAndValues) {
  std::vector<Tensor> expected = test::like(tensors_);
  ASSERT_TRUE(test::decode_into(frame_, &expected).ok());
  for (const unsigned threads : {2u, 3u, 8u}) {
    SCOPED_TRACE(threads);
    Workspace workspace;
    ASSERT_TRUE(workspace.set_threads(threads).ok());
    ASSERT_EQ(workspace.threads(), threads);
    for (int again = 0; again < 3; ++again) {
      EncodeStats stats;
      ASSERT_EQ(encode_with(workspace, spec_, tensors_, &stats), frame_);
      EXPECT_EQ(stats.blocks_stored, stats_.blocks_stored);
      EXPECT_EQ(stats.blocks_coded, stats_.blocks_coded);
      EXPECT_EQ(stats.own_tables, stats_.own_tables);
      EXPECT_EQ(stats.blocks_fixed, stats_.blocks_fixed);
      EXPECT_EQ(stats.outliers, stats_.outliers);
      std::vector<Tensor> decoded = test::like(tensors_);
      ASSERT_TRUE(decode(frame_, test::views_of(&decoded), workspace).ok());
      for (std::size_t t = 0; t < decoded.size(); ++t) {
        ASSERT_EQ(decoded[t].bytes, expected[t].bytes);
      }
    }
  }
}

TEST_P(Threads, AddsTheSame) {
  const DType dtype = GetParam().dtype;
  if (!is_compressible(dtype)) GTEST_SKIP() << "values are not added";
  const DType sum = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  std::vector<std::vector<Tensor>> sums;
  for (const unsigned threads : {1u, 3u}) {
    Workspace workspace;
    ASSERT_TRUE(workspace.set_threads(threads).ok());
    std::vector<Tensor> accumulators;
    for (const Tensor& tensor : tensors_) {
      accumulators.push_back(test::gradient_like(sum, tensor.count, 5, 1.0));
    }
    ASSERT_TRUE(decode_add(frame_, test::views_of(&accumulators), workspace).ok());
    sums.push_back(std::move(accumulators));
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) EXPECT_EQ(sums[0][t].bytes, sums[1][t].bytes);
}

// Three damaged blocks: the first one in the frame is named, whichever thread meets which first.
TEST_P(Threads, TheFirstBadBlockIsNamed) {
  const FrameInfo info = *inspect(frame_);
  ASSERT_GT(info.blocks.size(), 8u);
  std::uint64_t at = info.header_length;
  Bytes damaged = frame_;
  for (std::size_t block = 0; block < info.blocks.size(); ++block) {
    if (block == 4 || block == 5 || block == 7) damaged[at] ^= std::byte{1};
    at += info.blocks[block].length;
  }
  Workspace workspace;
  ASSERT_TRUE(workspace.set_threads(4).ok());
  std::vector<Tensor> decoded = test::like(tensors_);
  for (int again = 0; again < 20; ++again) {
    const Status status = decode(damaged, test::views_of(&decoded), workspace);
    ASSERT_FALSE(status.ok());
    ASSERT_EQ(status.error().code, ErrorCode::kBlockChecksum);
    ASSERT_EQ(status.error().theirs, "4");
  }
  EXPECT_TRUE(decode(frame_, test::views_of(&decoded), workspace).ok()) << "serves the next call";
}

TEST_P(Threads, SteadyUseAllocatesNothing) {
  Workspace workspace;
  ASSERT_TRUE(workspace.set_threads(2).ok());
  std::vector<Tensor> decoded = test::like(tensors_);
  const std::vector<TensorView> views = test::views_of(&decoded);
  Bytes out(max_encoded_size(spec_, GetParam().dtype, values_, parts_.size()));
  std::uint64_t fewest = ~std::uint64_t{0};
  // Which thread takes which block differs from call to call, and a buffer can grow late.
  for (int call = 0; call < 50 && fewest > 0; ++call) {
    const std::uint64_t before = test::allocations_of_all_threads();
    ASSERT_TRUE(encode(spec_, parts_, {}, out, workspace).ok());
    ASSERT_TRUE(decode(frame_, views, workspace).ok());
    if (call > 0) fewest = std::min(fewest, test::allocations_of_all_threads() - before);
  }
  EXPECT_EQ(fewest, 0u);
}

TEST_P(Threads, AllocationFailureOnAnyThread) {
  for (std::uint64_t number = 1;; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    Workspace workspace;
    ASSERT_TRUE(workspace.set_threads(2).ok());
    std::vector<Tensor> decoded = test::like(tensors_);
    const std::vector<TensorView> views = test::views_of(&decoded);
    Bytes out(max_encoded_size(spec_, GetParam().dtype, values_, parts_.size()));
    test::fail_allocation_of_any_thread(number);
    const Result<std::size_t> length = encode(spec_, parts_, {}, out, workspace);
    const Status status = decode(frame_, views, workspace);
    const bool failed = test::fail_allocation_of_any_thread(0);
    EXPECT_EQ(failed, !length.ok() || !status.ok());
    if (!length.ok()) {
      EXPECT_EQ(length.error().code, ErrorCode::kOutOfMemory);
    }
    if (!status.ok()) {
      EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
    }
    ASSERT_EQ(encode_with(workspace, spec_, tensors_), frame_) << "serves the next call";
    if (!failed || HasFailure()) break;
  }
}

TEST(ThreadsOfWorkspace, NumbersAndMoves) {
  Workspace workspace;
  EXPECT_EQ(workspace.threads(), 1u);
  const Status refused = workspace.set_threads(257);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(refused.error().field, "threads");
  EXPECT_EQ(workspace.threads(), 1u);
  ASSERT_TRUE(workspace.set_threads(3).ok());
  Workspace other = std::move(workspace);
  EXPECT_EQ(other.threads(), 3u);
  EXPECT_EQ(workspace.threads(), 1u);  // NOLINT(bugprone-use-after-move): documented
  ASSERT_TRUE(other.set_threads(0).ok());
  EXPECT_GE(other.threads(), 1u);
  ASSERT_TRUE(other.set_threads(1).ok());
  EXPECT_EQ(other.threads(), 1u);
}

// Rounding upwards in the caller reaches no worker.
TEST(ThreadsOfWorkspace, TheCallersRoundingChangesNoByte) {
  const CodecSpec spec = *CodecSpec::parse("near_lossless");
  const std::vector<Tensor> tensors = {test::gradient_like(DType::kFloat32, 1 << 20, 3)};
  const Bytes frame = test::encode_tensors(spec, tensors);
  std::fesetround(FE_UPWARD);
  Workspace workspace;
  ASSERT_TRUE(workspace.set_threads(2).ok());
  const Bytes other = encode_with(workspace, spec, tensors);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(other, frame);
}

TEST(ThreadsOfWorkspace, RandomFramesAreTheSame) {
  Workspace workspace;
  ASSERT_TRUE(workspace.set_threads(3).ok());
  test::RandomLoop loop(1.5);
  while (loop.next()) {
    const test::RandomCase random = test::make_random_case(loop.seed(), 600000);
    SCOPED_TRACE(random.describe());
    const Bytes frame = test::encode_tensors(random.spec, random.tensors);
    ASSERT_EQ(encode_with(workspace, random.spec, random.tensors), frame);
    std::vector<Tensor> expected = test::like(random.tensors);
    std::vector<Tensor> decoded = test::like(random.tensors);
    ASSERT_TRUE(test::decode_into(frame, &expected).ok());
    ASSERT_TRUE(decode(frame, test::views_of(&decoded), workspace).ok());
    for (std::size_t t = 0; t < decoded.size(); ++t) {
      ASSERT_EQ(decoded[t].bytes, expected[t].bytes);
    }
  }
}

}  // namespace
}  // namespace gradwire
