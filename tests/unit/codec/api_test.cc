// Errors of the public functions, and what they promise about sizes and memory.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/allocation_counter.h"
#include "support/codec_cases.h"
#include "support/frame_edit.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::Tensor;

Part part_of(const Tensor& tensor) {
  return {.values = tensor.view(), .tensor = 0, .first_index = 0};
}

Error encode_error(const CodecSpec& spec, std::vector<Part> parts,
                   const EncodeOptions& options = {}, std::size_t out_bytes = 1 << 16) {
  Bytes out(out_bytes);
  Workspace workspace;
  const auto length = encode(spec, parts, options, out, workspace);
  EXPECT_FALSE(length.ok());
  return length.ok() ? Error{} : length.error();
}

TEST(MaxEncodedSize, IsTheClosedFormula) {
  const CodecSpec spec = test::spec_of("near_lossless:block=4096");
  EXPECT_EQ(max_encoded_size(spec, DType::kFloat32, 0, 0), 128u);
  EXPECT_EQ(max_encoded_size(spec, DType::kFloat32, 1, 1), 128u + 8 + 32 + 4);
  EXPECT_EQ(max_encoded_size(spec, DType::kFloat32, 4096, 1), 128u + 8 + 32 + 4 * 4096);
  EXPECT_EQ(max_encoded_size(spec, DType::kFloat64, 4097, 3, 10), 128u + 24 + 64 + 8 * 4097 + 10);
}

TEST(MaxEncodedSize, SaturatesInsteadOfWrapping) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(max_encoded_size({}, DType::kFloat64, kMost / 8 + 1, 1), kMost);
  EXPECT_EQ(max_encoded_size({}, DType::kFloat64, kMost / 8, 1), kMost);
  EXPECT_EQ(max_encoded_size({}, DType::kUInt8, 1, kMost), kMost);
  EXPECT_EQ(max_encoded_size({}, DType::kUInt8, 1, 1, kMost), kMost);
  CodecSpec broken;
  broken.block_values = 0;  // encode() refuses it; the size must not divide by zero
  EXPECT_GE(max_encoded_size(broken, DType::kUInt8, 10, 1), 10u);
}

TEST(Encode, RefusesABufferThatIsOneByteShort) {
  for (const test::CodecCase& codec_case : test::codec_cases()) {
    const CodecSpec spec = test::spec_of(codec_case.spec);
    const Tensor tensor = test::gradient_like(codec_case.dtype, 100, 1);
    const auto most = static_cast<std::size_t>(max_encoded_size(spec, codec_case.dtype, 100, 1));
    const Error error = encode_error(spec, {part_of(tensor)}, {}, most - 1);
    EXPECT_EQ(error.code, ErrorCode::kBufferTooSmall);
    EXPECT_EQ(error.field, "out");
    EXPECT_NE(error.message.find(std::to_string(most)), std::string::npos) << error.message;
  }
}

TEST(Encode, RefusesWrongParts) {
  const Tensor floats = test::gradient_like(DType::kFloat32, 10, 1);
  const Tensor doubles = test::gradient_like(DType::kFloat64, 10, 1);
  Error error = encode_error({}, {part_of(floats), part_of(doubles)});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "dtype");
  EXPECT_NE(error.message.find("part 1"), std::string::npos) << error.message;
  error = encode_error({}, {Part{.values = {nullptr, 1, DType::kFloat32}}});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "data");
  error = encode_error(test::spec_of("natural"), {part_of(doubles)});
  EXPECT_EQ(error.code, ErrorCode::kUnsupportedDType);
  error = encode_error({}, {Part{.values = {floats.bytes.data(), 1, DType{77}}}});
  EXPECT_EQ(error.code, ErrorCode::kUnsupportedDType);
  // Counts that no memory holds are refused before a value is read.
  const Part huge{.values = {floats.bytes.data(), std::uint64_t{1} << 63, DType::kFloat32}};
  error = encode_error({}, {huge, huge});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "value_count");
  const Part many{.values = {floats.bytes.data(), std::uint64_t{1} << 55, DType::kFloat32}};
  EXPECT_EQ(encode_error({}, {many}).field, "block_count");
  const Part large{.values = {floats.bytes.data(), std::uint64_t{1} << 40, DType::kFloat32}};
  EXPECT_EQ(encode_error({}, {large}).code, ErrorCode::kBufferTooSmall);
}

TEST(Encode, RefusesWrongSpecs) {
  const Tensor tensor = test::gradient_like(DType::kFloat32, 10, 1);
  CodecSpec spec;
  spec.id = CodecId{255};
  EXPECT_EQ(encode_error(spec, {part_of(tensor)}).code, ErrorCode::kUnknownCodec);
  spec.id = CodecId::kBlock;  // without group and bits
  EXPECT_EQ(encode_error(spec, {part_of(tensor)}).code, ErrorCode::kOutOfRange);
  EXPECT_EQ(encode_error(spec, {part_of(tensor)}).field, "group");
}

TEST(Encode, RefusesContextsThatNoReaderTakes) {
  const Tensor tensor = test::gradient_like(DType::kFloat32, 10, 1);
  const auto field_of = [&](const FrameContext& context) {
    EncodeOptions options;
    options.context = context;
    const Error error = encode_error({}, {part_of(tensor)}, options);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    return error.field;
  };
  EXPECT_EQ(field_of({.op = Op{5}}), "op");
  EXPECT_EQ(field_of({.op = Op::kError}), "part_count");
  EXPECT_EQ(field_of({.phase = Phase{3}}), "phase");
  EXPECT_EQ(field_of({.reduction = Reduction{3}}), "reduction");
  EXPECT_EQ(field_of({.schedule = Schedule{2}}), "schedule");
  EXPECT_EQ(field_of({.segment = 1, .segment_count = 1}), "segment");
  EXPECT_EQ(field_of({.segment_count = 0}), "segment");
}

TEST(Encode, IsTheSameInAnyWorkspaceAndOnAnyCall) {
  const std::vector<Tensor> tensors = {test::gradient_like(DType::kFloat32, 10000, 1)};
  for (const test::CodecCase& codec_case : test::codec_cases()) {
    if (codec_case.dtype != DType::kFloat32) continue;
    const CodecSpec spec = test::spec_of(codec_case.spec);
    EXPECT_EQ(test::encode_tensors(spec, tensors), test::encode_tensors(spec, tensors));
  }
}

class DecodeInto : public ::testing::Test {
 protected:
  const std::vector<Tensor> tensors_ = {test::gradient_like(DType::kFloat32, 10, 1),
                                        test::gradient_like(DType::kFloat32, 20, 2)};
  const Bytes frame_ = test::encode_tensors(CodecSpec{}, tensors_);
  std::vector<Tensor> target_ = test::like(tensors_);
  Workspace workspace_;

  Error mismatch(std::vector<TensorView> views) {
    const Status status = decode(frame_, views, workspace_);
    EXPECT_FALSE(status.ok());
    const Status adding = decode_add(frame_, views, workspace_);
    EXPECT_FALSE(adding.ok());
    if (status.ok() || adding.ok()) return {};
    EXPECT_EQ(adding.error().to_string(), status.error().to_string());
    EXPECT_EQ(target_[0].bytes, test::like(tensors_)[0].bytes) << "written to in spite of an error";
    return status.error();
  }
};

TEST_F(DecodeInto, RefusesAnotherNumberOfParts) {
  const Error error = mismatch({target_[0].view()});
  EXPECT_EQ(error.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(error.field, "part_count");
  EXPECT_EQ(error.mine, "1");
  EXPECT_EQ(error.theirs, "2");
  EXPECT_EQ(mismatch({}).field, "part_count");
}

TEST_F(DecodeInto, RefusesAnotherCount) {
  TensorView shorter = target_[1].view();
  shorter.count = 19;
  const Error error = mismatch({target_[0].view(), shorter});
  EXPECT_EQ(error.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(error.field, "value_count");
  EXPECT_EQ(error.mine, "19");
  EXPECT_EQ(error.theirs, "20");
  EXPECT_NE(error.message.find("part 1"), std::string::npos) << error.message;
}

TEST_F(DecodeInto, RefusesAnotherType) {
  TensorView half = target_[1].view();
  half.dtype = DType::kFloat16;
  const Error error = mismatch({target_[0].view(), half});
  EXPECT_EQ(error.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(error.field, "dtype");
  EXPECT_EQ(error.mine, "float16");
  EXPECT_EQ(error.theirs, "float32");
}

TEST_F(DecodeInto, RefusesNull) {
  const Error error = mismatch({{nullptr, 10, DType::kFloat32}, target_[1].view()});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.field, "data");
}

TEST_F(DecodeInto, NullIsFineForEmptyParts) {
  const Bytes frame = test::encode_tensors(CodecSpec{}, {Tensor(DType::kFloat32, 0)});
  const TensorView nothing{nullptr, 0, DType::kFloat32};
  EXPECT_TRUE(decode(frame, {&nothing, 1}, workspace_).ok());
  EXPECT_TRUE(decode_add(frame, {&nothing, 1}, workspace_).ok());
}

TEST_F(DecodeInto, NamesTheBlockWithTheWrongHash) {
  CodecSpec spec;
  spec.block_values = 4096;
  const std::vector<Tensor> tensors = {test::gradient_like(DType::kFloat32, 3 * 4096, 1)};
  Bytes frame = test::encode_tensors(spec, tensors);
  frame[frame.size() - 4096 * 4 - 1] ^= std::byte{1};
  std::vector<Tensor> target = test::like(tensors);
  const Status status = test::decode_into(frame, &target);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kBlockChecksum);
  EXPECT_EQ(status.error().field, "block");
  EXPECT_EQ(status.error().theirs, "1");
  EXPECT_EQ(verify(frame).error().to_string(), status.error().to_string());
  EXPECT_TRUE(inspect(frame).ok()) << "inspect() reads no blocks";
}

TEST(DecodeAdd, AccumulatesHalfTypesInFloat32) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::vector<Tensor> tensors = {test::gradient_like(dtype, 10, 1)};
    const Bytes frame = test::encode_tensors(CodecSpec{}, tensors);
    Workspace workspace;
    std::vector<Tensor> same = test::like(tensors);
    EXPECT_EQ(decode_add(frame, test::views_of(&same), workspace).error().code,
              ErrorCode::kShapeMismatch);
    std::vector<Tensor> sums = {Tensor(DType::kFloat32, 10)};
    EXPECT_TRUE(decode_add(frame, test::views_of(&sums), workspace).ok());
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(sums[0].value(i), tensors[0].value(i));
  }
}

TEST(Memory, RunningOutIsAnErrorNotAnException) {
  const std::vector<Tensor> tensors = {test::gradient_like(DType::kFloat32, 9000, 1)};
  const std::vector<Part> parts = test::parts_of(tensors);
  for (const test::CodecCase& codec_case : test::codec_cases()) {
    if (codec_case.dtype != DType::kFloat32) continue;
    const CodecSpec spec = test::spec_of(codec_case.spec);
    const Bytes frame = test::encode_tensors(spec, tensors);
    std::vector<Tensor> target = test::like(tensors);
    const std::vector<TensorView> views = test::views_of(&target);
    Bytes out(frame.size() + 4 * 9000 + 400);
    Workspace workspace;
    test::limit_allocations(8);
    const auto encoded = encode(spec, parts, {}, out, workspace);
    const Status decoded = decode(frame, views, workspace);
    const Status added = decode_add(frame, views, workspace);
    const auto info = inspect(frame);
    const Status bad = verify(std::span(frame).first(frame.size() - 1));
    test::limit_allocations(0);
    for (const ErrorCode code : {encoded.ok() ? ErrorCode{0} : encoded.error().code,
                                 decoded.ok() ? ErrorCode{0} : decoded.error().code,
                                 added.ok() ? ErrorCode{0} : added.error().code}) {
      EXPECT_EQ(code, ErrorCode::kOutOfMemory) << codec_case.spec;
    }
    ASSERT_FALSE(info.ok() || bad.ok());
    EXPECT_EQ(info.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(bad.error().code, ErrorCode::kOutOfMemory) << "no memory for the text of the error";
    // The workspace is still good.
    EXPECT_TRUE(encode(spec, parts, {}, out, workspace).ok());
    EXPECT_TRUE(decode(frame, views, workspace).ok());
  }
}

TEST(Memory, RunningOutInTextIsAnError) {
  const std::string text(100, 'x');
  test::limit_allocations(8);
  const auto unknown = CodecSpec::parse(text);
  const Status takes = check_dtype(*CodecSpec::parse("cast"), DType::kFloat16);
  test::limit_allocations(0);
  ASSERT_FALSE(unknown.ok() || takes.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(takes.error().code, ErrorCode::kOutOfMemory);
}

TEST(Memory, AWorkspaceIsMadeAndMovedFromWithoutAny) {
  const Bytes frame = test::encode_tensors(CodecSpec{}, {Tensor(DType::kFloat32, 10)});
  std::vector<Tensor> target = {Tensor(DType::kFloat32, 10)};
  const std::vector<TensorView> views = test::views_of(&target);
  test::limit_allocations(8);
  Workspace workspace;
  const Status status = decode(frame, views, workspace);
  test::limit_allocations(0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
  ASSERT_TRUE(decode(frame, views, workspace).ok());
  Workspace taken = std::move(workspace);
  EXPECT_TRUE(decode(frame, views, taken).ok());
  EXPECT_TRUE(decode(frame, views, workspace).ok());  // NOLINT: it starts anew
}

TEST(Memory, DecodingTakesNoMemoryFromCountsInTheFrame) {
  // A frame that says 2^40 values in coded blocks of a few bytes: refused by the destination.
  Bytes frame = test::encode_tensors(test::spec_of("lossless"), {Tensor(DType::kFloat32, 5000)});
  std::vector<Tensor> target = {Tensor(DType::kFloat32, 5000)};
  const std::vector<TensorView> views = test::views_of(&target);
  Workspace workspace;
  ASSERT_TRUE(decode_add(frame, views, workspace).ok());
  test::change_header(frame, [](internal::FrameHeader& h) { h.value_count = 250000; });
  internal::store_le<std::uint64_t>(frame.data() + 128, 250000);
  test::fix_checksums(frame);
  ASSERT_TRUE(verify(frame).ok());
  test::reset_allocations();
  const Status status = decode_add(frame, views, workspace);
  EXPECT_LE(test::allocations().largest, 1024u);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kShapeMismatch);
}

}  // namespace
}  // namespace gradwire
