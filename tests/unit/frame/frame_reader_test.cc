#include "frame/frame_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/allocation_counter.h"
#include "support/codec_cases.h"
#include "support/frame_edit.h"

namespace gradwire::internal {
namespace {

using test::Bytes;

Bytes make_frame(std::string_view spec) {
  EncodeOptions options;
  options.metadata = "text";
  options.context.segment_count = 2;
  return test::encode_tensors(
      test::spec_of(spec),
      {test::gradient_like(DType::kFloat32, 4000, 1), test::gradient_like(DType::kFloat32, 0, 2),
       test::gradient_like(DType::kFloat32, 1000, 3)},
      options);
}

Error error_of(std::span<const std::byte> frame) {
  const Result<FrameView> view = FrameView::open(frame);
  if (!view.ok()) return view.error();
  Error none;
  none.code = ErrorCode{0};
  return none;
}

std::string describe(const Error& error) {
  return error.code == ErrorCode{0} ? "no error" : error.to_string();
}

// One thing that a header must not say, and the field that the error must name.
struct BadField {
  const char* spec;
  const char* field;
  std::function<void(FrameHeader&)> change;
};

const std::vector<BadField>& bad_fields() {
  static const std::vector<BadField> kFields = {
      {"none", "op", [](FrameHeader& h) { h.op = Op{5}; }},
      {"none", "op", [](FrameHeader& h) { h.op = Op{254}; }},
      {"none", "phase", [](FrameHeader& h) { h.phase = Phase{3}; }},
      {"none", "dtype", [](FrameHeader& h) { h.dtype = DType{0}; }},
      {"none", "dtype", [](FrameHeader& h) { h.dtype = DType{27}; }},
      {"cast", "dtype", [](FrameHeader& h) { h.dtype = DType::kFloat16; }},
      {"int8", "dtype", [](FrameHeader& h) { h.dtype = DType::kInt32; }},
      {"natural", "dtype", [](FrameHeader& h) { h.dtype = DType::kFloat64; }},
      {"lossless", "dtype", [](FrameHeader& h) { h.dtype = DType::kInt32; }},
      {"near_lossless", "dtype", [](FrameHeader& h) { h.dtype = DType::kInt16; }},
      {"none", "reduction", [](FrameHeader& h) { h.reduction = Reduction{3}; }},
      {"none", "codec", [](FrameHeader& h) { h.codec = CodecId{15}; }},
      {"none", "coder", [](FrameHeader& h) { h.coder = Coder::kTans; }},
      {"lossless", "coder", [](FrameHeader& h) { h.coder = Coder::kNone; }},
      {"near_lossless", "coder", [](FrameHeader& h) { h.coder = Coder{3}; }},
      {"int8", "coder", [](FrameHeader& h) { h.coder = Coder::kHuffman; }},
      {"int8", "table", [](FrameHeader& h) { h.table = 1; }},
      {"lossless", "table", [](FrameHeader& h) { h.table = 0; }},
      {"lossless", "table", [](FrameHeader& h) { h.table = 16; }},
      {"near_lossless", "table", [](FrameHeader& h) { h.table = 1; }},
      {"near_lossless", "table", [](FrameHeader& h) { h.table = 15; }},
      {"near_lossless", "table", [](FrameHeader& h) { h.table = 39; }},
      {"near_lossless:mantissa=6", "table", [](FrameHeader& h) { h.table = 16; }},
      {"none", "schedule", [](FrameHeader& h) { h.schedule = Schedule{2}; }},
      {"int8", "rounding", [](FrameHeader& h) { h.rounding = Rounding{2}; }},
      {"none", "rounding", [](FrameHeader& h) { h.rounding = Rounding::kStochastic; }},
      {"near_lossless", "rounding", [](FrameHeader& h) { h.rounding = Rounding::kStochastic; }},
      {"none", "scale", [](FrameHeader& h) { h.scale = BoundScale::kRms; }},
      {"none", "options", [](FrameHeader& h) { h.options = BoundOptions{128}; }},
      {"none", "variant", [](FrameHeader& h) { h.variant = 1u << 31; }},
      {"qsgd", "variant", [](FrameHeader& h) { h.variant = 4; }},
      {"cocktail", "variant", [](FrameHeader& h) { h.variant = 0; }},
      {"natural", "group", [](FrameHeader& h) { h.group = 32; }},
      {"mxfp4", "group", [](FrameHeader& h) { h.group = 64; }},
      {"mxfp8", "cast_dtype", [](FrameHeader& h) { h.cast_dtype = DType::kBFloat16; }},
      {"hadamard", "group", [](FrameHeader& h) { h.group = 96; }},
      {"qsgd", "bits", [](FrameHeader& h) { h.bits = 9; }},
      {"terngrad", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0.5; }},
      {"top_k", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0; }},
      {"top_k", "cast_dtype", [](FrameHeader& h) { h.cast_dtype = DType::kFloat16; }},
      {"none", "group", [](FrameHeader& h) { h.group = 64; }},
      {"cast", "group", [](FrameHeader& h) { h.group = 256; }},
      {"int8", "group", [](FrameHeader& h) { h.group = 0; }},
      {"int8", "group", [](FrameHeader& h) { h.group = 12; }},
      {"int8", "group", [](FrameHeader& h) { h.group = 4104; }},
      {"lossless", "group", [](FrameHeader& h) { h.group = 32; }},
      {"lossless", "group", [](FrameHeader& h) { h.group = 4160; }},
      {"near_lossless", "group", [](FrameHeader& h) { h.group = 264; }},
      {"none", "block_values", [](FrameHeader& h) { h.block_values = 0; }},
      {"none", "block_values", [](FrameHeader& h) { h.block_values = 4097; }},
      {"none", "block_values", [](FrameHeader& h) { h.block_values = 1048576 + 4096; }},
      {"none", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 1; }},
      {"lossless", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = -0.0; }},
      {"near_lossless", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 8.5; }},
      {"near_lossless", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0.0039; }},
      {"near_lossless", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = -1; }},
      {"near_lossless", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0.0 / 0.0; }},
      {"near_lossless", "mantissa", [](FrameHeader& h) { h.quantizer_step = 0; }},
      {"near_lossless", "mantissa", [](FrameHeader& h) { h.mantissa = 6; }},
      {"near_lossless:mantissa=6", "mantissa", [](FrameHeader& h) { h.mantissa = 17; }},
      {"lossless", "mantissa", [](FrameHeader& h) { h.mantissa = 6; }},
      {"int8", "bits", [](FrameHeader& h) { h.bits = 7; }},
      {"int8", "bits", [](FrameHeader& h) { h.bits = 0; }},
      {"none", "bits", [](FrameHeader& h) { h.bits = 8; }},
      {"cast", "cast_dtype", [](FrameHeader& h) { h.cast_dtype = DType::kFloat32; }},
      {"cast", "cast_dtype", [](FrameHeader& h) { h.cast_dtype = DType{0}; }},
      {"none", "cast_dtype", [](FrameHeader& h) { h.cast_dtype = DType::kFloat16; }},
      {"none", "segment", [](FrameHeader& h) { h.segment = 2; }},
      {"none", "segment", [](FrameHeader& h) { h.segment_count = 0; }},
      {"none:block=4096", "block_count", [](FrameHeader& h) { h.value_count += 4096; }},
      {"none", "block_count", [](FrameHeader& h) { h.block_values = 4096; }},
      {"none", "value_count", [](FrameHeader& h) { h.value_count += 1; }},
      {"none", "value_count", [](FrameHeader& h) { h.value_count -= 1; }},
      {"none", "value_count", [](FrameHeader& h) { h.op = Op::kError; }},
  };
  return kFields;
}

// Those of error_bounded, and its fields in frames of another codec.
const std::vector<BadField>& bad_bound_fields() {
  static const std::vector<BadField> kFields = {
      {"error_bounded", "mantissa", [](FrameHeader& h) { h.mantissa = 6; }},
      {"error_bounded", "scale", [](FrameHeader& h) { h.scale = BoundScale::kNone; }},
      {"error_bounded", "scale", [](FrameHeader& h) { h.scale = BoundScale{5}; }},
      {"error_bounded", "options", [](FrameHeader& h) { h.options = BoundOptions{4}; }},
      {"error_bounded", "group", [](FrameHeader& h) { h.options = BoundOptions::kPerPart; }},
      {"error_bounded", "table", [](FrameHeader& h) { h.table = 1; }},
      {"error_bounded", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 8.5; }},
      {"error_bounded", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0; }},
      {"error_bounded", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 0.0 / 0.0; }},
      {"error_bounded:bound=4,rounding=nearest", "quantizer_step",
       [](FrameHeader& h) { h.quantizer_step = 4.5; }},
      {"compso", "quantizer_step", [](FrameHeader& h) { h.quantizer_step = 1.5; }},
      {"error_bounded:bound=1,scale=absolute", "quantizer_step",
       [](FrameHeader& h) { h.quantizer_step = 0x1p128; }},
      {"near_lossless", "scale", [](FrameHeader& h) { h.scale = BoundScale::kRms; }},
      {"near_lossless", "options", [](FrameHeader& h) { h.options = BoundOptions::kFilter; }},
  };
  return kFields;
}

TEST(FrameReader, RefusesEveryBadFieldByName) {
  std::vector<BadField> fields = bad_fields();
  fields.insert(fields.end(), bad_bound_fields().begin(), bad_bound_fields().end());
  for (const BadField& bad : fields) {
    Bytes frame = make_frame(bad.spec);
    ASSERT_EQ(describe(error_of(frame)), "no error") << bad.spec;
    test::change_header(frame, bad.change);
    const Error error = error_of(frame);
    EXPECT_EQ(error.code, ErrorCode::kBadHeader) << bad.spec << " " << bad.field;
    EXPECT_EQ(error.field, bad.field) << bad.spec << ": " << describe(error);
    EXPECT_NE(error.message.find(bad.field), std::string::npos) << error.message;
  }
}

TEST(FrameReader, FieldsWithoutARangeTakeAnyValue) {
  Bytes frame = make_frame("none");
  test::change_header(frame, [](FrameHeader& h) {
    h.op = Op::kBroadcast;
    h.world = h.sender = 0xFFFFFFFF;
    h.group_id = h.step = h.sequence = h.seed = h.first_value = ~std::uint64_t{0};
  });
  EXPECT_EQ(describe(error_of(frame)), "no error");
}

struct BadEntry {
  const char* spec;
  const char* field;
  std::function<void(BlockEntry&)> change;
};

TEST(FrameReader, RefusesEveryBadIndexEntryByName) {
  const std::vector<BadEntry> entries = {
      {"none", "kind", [](BlockEntry& e) { e.kind = BlockKind::kCoded; }},
      {"none", "kind", [](BlockEntry& e) { e.kind = BlockKind::kFixed; }},
      {"none", "kind", [](BlockEntry& e) { e.kind = BlockKind{3}; }},
      {"cast", "kind", [](BlockEntry& e) { e.kind = BlockKind::kCoded; }},
      {"lossless", "kind", [](BlockEntry& e) { e.kind = BlockKind::kFixed; }},
      {"none", "lanes", [](BlockEntry& e) { e.lanes = 1; }},
      {"lossless", "lanes", [](BlockEntry& e) { e.lanes = 0; }},
      {"lossless", "lanes", [](BlockEntry& e) { e.lanes = 2; }},
      {"cast", "plane_bytes", [](BlockEntry& e) { e.plane_bytes = 1; }},
      {"lossless", "plane_bytes", [](BlockEntry& e) { e.plane_bytes = 7; }},
      {"int8", "scale_bits", [](BlockEntry& e) { e.scale_bits = 1; }},
      {"lossless", "scale_bits", [](BlockEntry& e) { e.scale_bits = 13; }},
      {"none", "scale_base", [](BlockEntry& e) { e.scale_base = -1; }},
      {"none", "mantissa", [](BlockEntry& e) { e.mantissa = 1; }},
      {"none", "flags", [](BlockEntry& e) { e.flags = 1; }},
      {"lossless", "flags", [](BlockEntry& e) { e.flags = 2; }},
      {"none", "word_count", [](BlockEntry& e) { e.word_count = 1; }},
      {"none", "outlier_count", [](BlockEntry& e) { e.outlier_count = 1; }},
      {"cast", "outlier_count", [](BlockEntry& e) { e.outlier_count = 1; }},
      {"none", "reserved", [](BlockEntry& e) { e.reserved = 1; }},
      {"lossless", "reserved", [](BlockEntry& e) { e.reserved = 1u << 31; }},
      {"none", "length", [](BlockEntry& e) { e.length += 4; }},
      {"none", "length", [](BlockEntry& e) { e.length = 0; }},
      {"cast", "encoded_length", [](BlockEntry& e) { e.length += 1; }},
      {"cast", "encoded_length", [](BlockEntry& e) { e.length = 0xFFFFFFFF; }},
      {"lossless", "encoded_length", [](BlockEntry& e) { e.length -= 1; }},
  };
  for (const BadEntry& bad : entries) {
    Bytes frame = make_frame(bad.spec);
    test::change_entry(frame, 0, bad.change);
    const Error error = error_of(frame);
    EXPECT_EQ(error.code, ErrorCode::kBadHeader) << bad.spec << " " << bad.field;
    EXPECT_EQ(error.field, bad.field) << bad.spec << ": " << describe(error);
  }
}

TEST(FrameReader, PartTableMustAddUpWithoutOverflow) {
  Bytes frame = make_frame("none");
  // 4000 + 0 + 1000 becomes a sum that is right modulo 2^64 only.
  store_le<std::uint64_t>(frame.data() + 128, 5001);
  store_le<std::uint64_t>(frame.data() + 144, ~std::uint64_t{0});
  test::fix_checksums(frame);
  EXPECT_EQ(error_of(frame).field, "value_count");
  EXPECT_EQ(error_of(frame).code, ErrorCode::kBadHeader);
  store_le<std::uint64_t>(frame.data() + 128, 0);
  store_le<std::uint64_t>(frame.data() + 144, 5000);
  test::fix_checksums(frame);
  EXPECT_EQ(describe(error_of(frame)), "no error");
}

TEST(FrameReader, ChecksComeInTheOrderOfTheFormat) {
  // All defects at once; each step repairs the first of them.
  const Bytes good = make_frame("none");
  FrameHeader header = read_header(std::span(good).first<kHeaderBytes>());
  header.magic = 1;
  header.version = 1;
  header.encoded_length = 10;
  header.block_count = 0xFFFFFFFF;
  header.checksum ^= 1;
  header.op = Op{9};
  header.value_count += 1;
  Bytes frame = good;
  const auto look = [&] {
    write_header(header, std::span(frame).first<kHeaderBytes>());
    return error_of(frame);
  };
  write_header(header, std::span(frame).first<kHeaderBytes>());
  EXPECT_EQ(error_of(std::span(frame).first(127)).code, ErrorCode::kTruncated);
  EXPECT_EQ(look().code, ErrorCode::kBadMagic);
  header.magic = kMagic;
  EXPECT_EQ(look().code, ErrorCode::kUnsupportedVersion);
  header.version = 0;
  EXPECT_EQ(look().code, ErrorCode::kTrailingBytes);
  header.encoded_length = good.size() + 1;
  EXPECT_EQ(look().code, ErrorCode::kTruncated);
  header.encoded_length = good.size();
  EXPECT_EQ(look().code, ErrorCode::kBadHeader);
  EXPECT_EQ(look().field, "encoded_length");
  header.block_count = 1;
  EXPECT_EQ(look().code, ErrorCode::kHeaderChecksum);
  test::fix_checksums(frame);
  EXPECT_EQ(error_of(frame).field, "op");
  test::change_header(frame, [](FrameHeader& h) { h.op = Op::kNone; });
  test::change_entry(frame, 0, [](BlockEntry& e) { e.reserved = 1; });
  EXPECT_EQ(error_of(frame).field, "value_count");
  test::change_header(frame, [](FrameHeader& h) { h.value_count -= 1; });
  EXPECT_EQ(error_of(frame).field, "reserved");
  test::change_entry(frame, 0, [](BlockEntry& e) { e.reserved = 0; });
  EXPECT_EQ(describe(error_of(frame)), "no error");
}

TEST(FrameReader, LyingCountsCostNeitherMemoryNorTime) {
  const std::vector<std::function<void(FrameHeader&)>> lies = {
      [](FrameHeader& h) { h.part_count = 0xFFFFFFFF; },
      [](FrameHeader& h) { h.block_count = 0xFFFFFFFF; },
      [](FrameHeader& h) { h.metadata_bytes = 0xFFFFFFFF; },
      [](FrameHeader& h) { h.part_count = h.block_count = h.metadata_bytes = 0xFFFFFFFF; },
      [](FrameHeader& h) { h.value_count = std::uint64_t{1} << 63; },
      [](FrameHeader& h) { h.value_count = ~std::uint64_t{0}; },
      [](FrameHeader& h) { h.encoded_length = ~std::uint64_t{0}; },
      [](FrameHeader& h) { h.encoded_length = 0; },
  };
  for (std::size_t lie = 0; lie < lies.size(); ++lie) {
    Bytes frame = make_frame("near_lossless");
    FrameHeader header = read_header(std::span(frame).first<kHeaderBytes>());
    lies[lie](header);
    write_header(header, std::span(frame).first<kHeaderBytes>());
    test::fix_checksums(frame);
    test::reset_allocations();
    const Result<FrameInfo> info = inspect(frame);
    EXPECT_LE(test::allocations().largest, 1024u) << lie;  // the text of the error
    EXPECT_FALSE(info.ok()) << lie;
  }
}

TEST(FrameReader, OpeningAGoodFrameAllocatesNothing) {
  const Bytes frame = make_frame("lossless:block=4096");
  test::reset_allocations();
  const Result<FrameView> view = FrameView::open(frame);
  EXPECT_EQ(test::allocations().calls, 0u);
  EXPECT_TRUE(view.ok());
}

TEST(FrameReader, LengthNeedsOnlyTheHeader) {
  Bytes frame = make_frame("none");
  const auto header = std::span(frame).first(kHeaderBytes);
  ASSERT_TRUE(read_frame_length(header).ok());
  EXPECT_EQ(*read_frame_length(header), frame.size());
  EXPECT_EQ(*frame_length(header), frame.size());
  EXPECT_EQ(read_frame_length(header.first(127)).error().code, ErrorCode::kTruncated);
  EXPECT_EQ(read_frame_length({}).error().code, ErrorCode::kTruncated);
  FrameHeader changed = read_header(header.first<kHeaderBytes>());
  changed.encoded_length = changed.header_length() - 1;
  write_header(changed, header.first<kHeaderBytes>());
  EXPECT_EQ(read_frame_length(header).error().code, ErrorCode::kBadHeader);
  frame[4] = std::byte{1};
  EXPECT_EQ(read_frame_length(header).error().code, ErrorCode::kUnsupportedVersion);
  frame[0] = std::byte{0};
  EXPECT_EQ(read_frame_length(header).error().code, ErrorCode::kBadMagic);
}

TEST(FrameReader, ErrorFrameHoldsTextOnly) {
  EncodeOptions options;
  options.context.op = Op::kError;
  options.metadata = R"({"code": 40})";
  const Bytes frame = test::encode_tensors(CodecSpec{}, {}, options);
  const Result<FrameView> view = FrameView::open(frame);
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(view->metadata(), options.metadata);
  EXPECT_EQ(view->header().part_count + view->header().block_count + view->header().value_count,
            0u);
}

}  // namespace
}  // namespace gradwire::internal
