#include "frame/header.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace gradwire::internal {
namespace {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes counting_bytes() {
  HeaderBytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST(Header, WritesWhatItReads) {
  const HeaderBytes bytes = counting_bytes();
  HeaderBytes back{};
  write_header(read_header(bytes), back);
  EXPECT_EQ(back, bytes);
}

TEST(Header, FieldsLieWhereTheFormatSays) {
  const FrameHeader header = read_header(counting_bytes());
  EXPECT_EQ(header.magic, 0x04030201u);
  EXPECT_EQ(header.version, 0x0605u);
  EXPECT_EQ(static_cast<int>(header.op), 7);
  EXPECT_EQ(static_cast<int>(header.phase), 8);
  EXPECT_EQ(static_cast<int>(header.dtype), 9);
  EXPECT_EQ(static_cast<int>(header.reduction), 10);
  EXPECT_EQ(static_cast<int>(header.codec), 11);
  EXPECT_EQ(static_cast<int>(header.coder), 12);
  EXPECT_EQ(header.table, 13);
  EXPECT_EQ(static_cast<int>(header.schedule), 14);
  EXPECT_EQ(static_cast<int>(header.rounding), 15);
  EXPECT_EQ(static_cast<int>(header.scale), 16);
  EXPECT_EQ(header.group, 0x14131211u);
  EXPECT_EQ(header.block_values, 0x18171615u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(header.quantizer_step), 0x201F1E1D1C1B1A19u);
  EXPECT_EQ(header.mantissa, 33);
  EXPECT_EQ(header.bits, 34);
  EXPECT_EQ(static_cast<int>(header.cast_dtype), 35);
  EXPECT_EQ(static_cast<int>(header.options), 36);
  EXPECT_EQ(header.world, 0x28272625u);
  EXPECT_EQ(header.sender, 0x2C2B2A29u);
  EXPECT_EQ(header.segment, 0x302F2E2Du);
  EXPECT_EQ(header.segment_count, 0x34333231u);
  EXPECT_EQ(header.part_count, 0x38373635u);
  EXPECT_EQ(header.block_count, 0x3C3B3A39u);
  EXPECT_EQ(header.metadata_bytes, 0x403F3E3Du);
  EXPECT_EQ(header.value_count, 0x4847464544434241u);
  EXPECT_EQ(header.encoded_length, 0x504F4E4D4C4B4A49u);
  EXPECT_EQ(header.group_id, 0x5857565554535251u);
  EXPECT_EQ(header.step, 0x605F5E5D5C5B5A59u);
  EXPECT_EQ(header.sequence, 0x6867666564636261u);
  EXPECT_EQ(header.seed, 0x706F6E6D6C6B6A69u);
  EXPECT_EQ(header.first_value, 0x7877767574737271u);
  EXPECT_EQ(header.checksum, 0x807F7E7Du);
}

TEST(Header, LengthOfTheLargestCountsDoesNotOverflow) {
  FrameHeader header;
  EXPECT_EQ(header.header_length(), 128u);
  header.part_count = header.block_count = header.metadata_bytes = 0xFFFFFFFFu;
  EXPECT_EQ(header.header_length(), 128 + 41 * std::uint64_t{0xFFFFFFFFu});
}

TEST(Header, NamesAreThoseOfTheFieldsAndAllDifferent) {
  std::set<std::string_view> names;
  int fields = 0;
  const FrameHeader header;
  visit_header(header, [&](HeaderField field, std::size_t, std::string_view name, const auto&) {
    EXPECT_EQ(header_field_name(field), name);
    names.insert(name);
    ++fields;
  });
  EXPECT_EQ(names.size(), static_cast<std::size_t>(fields));
  EXPECT_EQ(header_field_name(HeaderField::quantizer_step), "quantizer_step");
}

TEST(Header, TextUsesNamesWhereThereAreSome) {
  FrameHeader header;
  header.op = Op::kAllReduce;
  header.phase = Phase::kResult;
  header.dtype = DType::kBFloat16;
  header.reduction = Reduction::kAvg;
  header.codec = CodecId::kNearLossless;
  header.schedule = Schedule::kDirect;
  header.rounding = Rounding::kStochastic;
  header.quantizer_step = 0.00575;
  header.scale = BoundScale::kAbsMax;
  header.options = static_cast<BoundOptions>(3);
  header.value_count = ~std::uint64_t{0};
  EXPECT_EQ(header_field_text(header, HeaderField::op), "all_reduce");
  EXPECT_EQ(header_field_text(header, HeaderField::phase), "result");
  EXPECT_EQ(header_field_text(header, HeaderField::dtype), "bfloat16");
  EXPECT_EQ(header_field_text(header, HeaderField::cast_dtype), "none");
  EXPECT_EQ(header_field_text(header, HeaderField::reduction), "avg");
  EXPECT_EQ(header_field_text(header, HeaderField::codec), "near_lossless");
  EXPECT_EQ(header_field_text(header, HeaderField::schedule), "direct");
  EXPECT_EQ(header_field_text(header, HeaderField::rounding), "stochastic");
  EXPECT_EQ(header_field_text(header, HeaderField::scale), "absmax");
  EXPECT_EQ(header_field_text(header, HeaderField::options), "filter, group=tensor");
  header.options = BoundOptions::kFilter;
  EXPECT_EQ(header_field_text(header, HeaderField::options), "filter");
  header.options = BoundOptions::kPerPart;
  EXPECT_EQ(header_field_text(header, HeaderField::options), "group=tensor");
  header.options = BoundOptions::kNone;
  EXPECT_EQ(header_field_text(header, HeaderField::options), "none");
  EXPECT_EQ(header_field_text(header, HeaderField::quantizer_step), "0.00575");
  EXPECT_EQ(header_field_text(header, HeaderField::value_count), "18446744073709551615");
}

TEST(Header, TextOfNumbersWithoutNameIsTheNumber) {
  const FrameHeader header = read_header(counting_bytes());
  for (const auto& [field, text] :
       {std::pair{HeaderField::op, "7"}, std::pair{HeaderField::phase, "8"},
        std::pair{HeaderField::dtype, "9"}, std::pair{HeaderField::reduction, "10"},
        std::pair{HeaderField::codec, "11"}, std::pair{HeaderField::schedule, "14"},
        std::pair{HeaderField::rounding, "15"}}) {
    EXPECT_EQ(header_field_text(header, field), text);
  }
  FrameHeader error;
  error.op = Op::kError;
  EXPECT_EQ(header_field_text(error, HeaderField::op), "error");
}

TEST(CompareHeaders, FindsADifferenceInEachField) {
  const FrameHeader mine = read_header(counting_bytes());
  visit_header(mine,
               [&](HeaderField field, std::size_t offset, std::string_view name, const auto&) {
                 HeaderBytes bytes = counting_bytes();
                 bytes[offset] ^= std::byte{0x80};
                 const FrameHeader theirs = read_header(bytes);
                 const auto found = compare_headers(mine, theirs, {field});
                 ASSERT_TRUE(found.has_value()) << name;
                 EXPECT_EQ(found->field, name);
                 EXPECT_EQ(found->mine, header_field_text(mine, field));
                 EXPECT_EQ(found->theirs, header_field_text(theirs, field));
                 const HeaderField other =
                     field == HeaderField::magic ? HeaderField::version : HeaderField::magic;
                 EXPECT_FALSE(compare_headers(mine, theirs, {other}).has_value()) << name;
                 EXPECT_FALSE(compare_headers(theirs, theirs, {field, other}).has_value()) << name;
               });
}

TEST(CompareHeaders, TheFirstFieldOfTheWireCounts) {
  FrameHeader mine;
  FrameHeader theirs;
  mine.codec = CodecId::kLossless;
  theirs.group = 64;
  theirs.step = 9;
  const HeaderFieldSet all{HeaderField::step, HeaderField::group, HeaderField::codec};
  EXPECT_EQ(compare_headers(mine, theirs, all)->field, "codec");
  EXPECT_EQ(compare_headers(mine, theirs, all)->mine, "lossless");
  EXPECT_EQ(compare_headers(mine, theirs, all)->theirs, "none");
  EXPECT_EQ(compare_headers(mine, theirs, {HeaderField::step, HeaderField::group})->field, "group");
}

}  // namespace
}  // namespace gradwire::internal
