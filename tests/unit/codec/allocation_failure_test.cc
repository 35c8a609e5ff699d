// Every allocation of every public function of gradwire/codec.h fails once, alone and with all that
// follow: an error, never an exception; nothing leaks; the workspace serves the next call.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/allocation_counter.h"
#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::CodecCase;
using test::Tensor;

constexpr std::uint64_t kMostAllocations = 10000;

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  return result.ok() ? ErrorCode{0} : result.error().code;
}

// One public function with its arguments; returns the code of its error, 0 without one.
using Call = std::function<ErrorCode(Workspace& workspace)>;

// Fails allocation 1, 2, ... of the call until it needs no more. `expected`: its code when memory
// suffices. Returns how many allocations there were.
std::uint64_t fail_each(const Call& call, bool all_after, ErrorCode expected) {
  for (std::uint64_t number = 1; number < kMostAllocations; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    ErrorCode code{};
    ErrorCode next{};
    bool failed = false;
    test::reset_allocations();
    {
      Workspace workspace;
      test::fail_allocations(number, all_after);
      try {
        code = call(workspace);
      } catch (...) {
        code = ErrorCode::kInternal;
      }
      failed = test::fail_allocations(0);
      next = call(workspace);
    }
    EXPECT_EQ(test::allocations().live, 0) << "a leak";
    EXPECT_EQ(next, expected) << "the workspace is spoilt";
    EXPECT_EQ(code, failed ? ErrorCode::kOutOfMemory : expected);
    if (!failed || testing::Test::HasFailure()) return number - 1;
  }
  ADD_FAILURE() << "there is no end of allocations";
  return kMostAllocations;
}

void expect_safe(const char* what, const Call& call, ErrorCode expected = {}) {
  SCOPED_TRACE(what);
  static_cast<void>(fail_each(call, false, expected));
  static_cast<void>(fail_each(call, true, expected));
}

class AllocationFailure : public ::testing::TestWithParam<CodecCase> {
 protected:
  void SetUp() override {
    spec_ = test::spec_of(GetParam().spec);
    spec_.block_values = 4096;
    for (const std::uint64_t count : {5000u, 0u, 70u}) {
      tensors_.push_back(test::gradient_like(GetParam().dtype, count, count));
    }
    if (is_compressible(GetParam().dtype)) {
      const Tensor special = test::special_values(GetParam().dtype);
      for (std::size_t i = 0; i < 32; ++i) tensors_[2].set_bits(i, special.bits(i));
    }
    parts_ = test::parts_of(tensors_);
    options_.metadata = "a text that is longer than what a string holds by itself";
    frame_ = test::encode_tensors(spec_, tensors_, options_);
    out_.resize(max_encoded_size(spec_, GetParam().dtype, 5070, 3, options_.metadata.size()));
    decoded_ = test::like(tensors_);
    views_ = test::views_of(&decoded_);
  }

  CodecSpec spec_;
  std::vector<Tensor> tensors_;
  std::vector<Part> parts_;
  EncodeOptions options_;
  Bytes frame_;
  Bytes out_;
  std::vector<Tensor> decoded_;
  std::vector<TensorView> views_;
};

INSTANTIATE_TEST_SUITE_P(Registry, AllocationFailure, ::testing::ValuesIn(test::codec_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

TEST_P(AllocationFailure, Encode) {
  expect_safe("encode", [&](Workspace& workspace) {
    const auto length = encode(spec_, parts_, options_, out_, workspace);
    if (length.ok()) {
      EXPECT_TRUE(std::equal(frame_.begin(), frame_.end(), out_.begin(),
                             out_.begin() + static_cast<std::ptrdiff_t>(*length)));
    }
    return code_of(length);
  });
  expect_safe(
      "buffer too small",
      [&](Workspace& workspace) {
        return code_of(encode(spec_, parts_, {}, std::span(out_).first(100), workspace));
      },
      ErrorCode::kBufferTooSmall);
}

TEST_P(AllocationFailure, Decode) {
  expect_safe("decode",
              [&](Workspace& workspace) { return code_of(decode(frame_, views_, workspace)); });
  expect_safe(
      "another shape",
      [&](Workspace& workspace) {
        return code_of(decode(frame_, std::span(views_).first(2), workspace));
      },
      ErrorCode::kShapeMismatch);
  Bytes damaged = frame_;
  damaged.back() ^= std::byte{1};
  expect_safe(
      "damaged block",
      [&](Workspace& workspace) { return code_of(decode(damaged, views_, workspace)); },
      ErrorCode::kBlockChecksum);
}

TEST_P(AllocationFailure, DecodePart) {
  expect_safe("decode_part", [&](Workspace& workspace) {
    return code_of(decode_part(frame_, 2, views_[2], workspace));
  });
  expect_safe(
      "no such part",
      [&](Workspace& workspace) { return code_of(decode_part(frame_, 3, views_[2], workspace)); },
      ErrorCode::kOutOfRange);
}

TEST_P(AllocationFailure, DecodeAdd) {
  const DType dtype = GetParam().dtype;
  std::vector<Tensor> sums;
  for (const Tensor& tensor : tensors_) {
    sums.emplace_back(dtype == DType::kFloat64 ? dtype : DType::kFloat32, tensor.count);
  }
  const std::vector<TensorView> views = test::views_of(&sums);
  const ErrorCode expected = is_compressible(dtype) ? ErrorCode{} : ErrorCode::kUnsupportedDType;
  expect_safe(
      "decode_add",
      [&](Workspace& workspace) { return code_of(decode_add(frame_, views, workspace)); },
      expected);
}

TEST_P(AllocationFailure, InspectAndVerify) {
  expect_safe("inspect", [&](Workspace&) { return code_of(inspect(frame_)); });
  expect_safe("verify", [&](Workspace&) { return code_of(verify(frame_)); });
  expect_safe("frame_length", [&](Workspace&) { return code_of(frame_length(frame_)); });
  const auto cut = std::span(frame_).first(frame_.size() - 1);
  expect_safe(
      "inspect, truncated", [&](Workspace&) { return code_of(inspect(cut)); },
      ErrorCode::kTruncated);
  expect_safe(
      "verify, truncated", [&](Workspace&) { return code_of(verify(cut)); }, ErrorCode::kTruncated);
}

TEST(AllocationFailureOfSpecs, ParseAndCheck) {
  const auto parse = [](const char* text) {
    return [text](Workspace&) { return code_of(CodecSpec::parse(text)); };
  };
  for (const CodecCase& one : test::codec_cases()) {
    expect_safe(one.spec.c_str(), parse(one.spec.c_str()));
  }
  expect_safe("unknown codec", parse("no_such_codec_in_the_registry"), ErrorCode::kUnknownCodec);
  expect_safe("unknown parameter", parse("lossless:no_such_parameter=1"),
              ErrorCode::kUnknownParameter);
  expect_safe("out of range", parse("near_lossless:step=123456789"), ErrorCode::kOutOfRange);
  expect_safe("no value", parse("near_lossless:step"), ErrorCode::kInvalidArgument);
  const CodecSpec natural = test::spec_of("natural");
  expect_safe(
      "check_dtype", [&](Workspace&) { return code_of(check_dtype(natural, DType::kFloat64)); },
      ErrorCode::kUnsupportedDType);
}

// The tests above would see what they look for.
TEST(AllocationFailureOfSpecs, FailuresAndLeaksAreSeen) {
  std::vector<std::unique_ptr<int>> kept;
  kept.reserve(2);
  test::reset_allocations();
  test::fail_allocations(2);
  kept.push_back(std::make_unique<int>(1));
  EXPECT_THROW(kept.push_back(std::make_unique<int>(2)), std::bad_alloc);
  EXPECT_TRUE(test::fail_allocations(0));
  EXPECT_EQ(test::allocations().live, 1);
  kept.clear();
  EXPECT_EQ(test::allocations().live, 0);
}

}  // namespace
}  // namespace gradwire
