#include "collective/error_frame.h"

#include <gtest/gtest.h>

#include <string>

#include "frame/frame_reader.h"

namespace gradwire::internal {
namespace {

FrameHeader place() {
  FrameHeader header;
  header.op = Op::kAllReduce;
  header.dtype = DType::kFloat32;
  header.block_values = 262144;
  header.segment_count = 1;
  header.sender = 1;
  header.world = 3;
  header.sequence = 9;
  header.part_count = 4;  // leftovers of another frame
  header.value_count = 77;
  return header;
}

Error mismatch() {
  Error error;
  error.code = ErrorCode::kPeerMismatch;
  error.message = "the ranks \"disagree\"\n\\ \x01";
  error.field = "codec";
  error.mine = "lossless";
  error.theirs = "none";
  error.rank = 2;
  return error;
}

std::string metadata_of(const std::vector<std::byte>& bytes) {
  const Result<FrameView> frame = FrameView::open(bytes);
  EXPECT_TRUE(frame.ok()) << frame.error().to_string();
  return frame.ok() ? std::string(frame->metadata()) : "";
}

TEST(ErrorFrame, SurvivesTheWire) {
  const std::vector<std::byte> bytes = write_error_frame(place(), mismatch());
  const Result<FrameView> frame = FrameView::open(bytes);
  ASSERT_TRUE(frame.ok()) << frame.error().to_string();
  EXPECT_EQ(frame->header().op, Op::kError);
  EXPECT_EQ(frame->header().sequence, 9u);
  EXPECT_EQ(frame->header().sender, 1u);
  const Error error = parse_error_metadata(frame->metadata());
  EXPECT_EQ(error.code, ErrorCode::kPeerMismatch);
  EXPECT_EQ(error.message, mismatch().message);
  EXPECT_EQ(error.field, "codec");
  EXPECT_EQ(error.mine, "lossless");
  EXPECT_EQ(error.theirs, "none");
  EXPECT_EQ(error.rank, 2);
}

TEST(ErrorFrame, LongTextsAreCutBetweenCharacters) {
  Error error = mismatch();
  error.message = std::string(10000, '\x02');  // takes most room
  error.field = std::string(10000, '\x02');
  error.mine = "x";
  for (int i = 0; i < 500; ++i) error.mine += "\xC3\xA9";  // two bytes each
  error.theirs = std::string(10000, '"');
  const std::vector<std::byte> bytes = write_error_frame(place(), error);
  ASSERT_FALSE(bytes.empty());
  EXPECT_LE(bytes.size(), kMaxErrorFrameBytes);
  const Error parsed = parse_error_metadata(metadata_of(bytes));
  EXPECT_EQ(parsed.code, ErrorCode::kPeerMismatch);
  EXPECT_GT(parsed.message.size(), 100u);
  ASSERT_GT(parsed.mine.size(), 100u);
  EXPECT_EQ(parsed.mine.back(), '\xA9');
}

TEST(ErrorFrame, UnreadableReportsAreErrorsToo) {
  const std::string good = metadata_of(write_error_frame(place(), mismatch()));
  for (std::size_t length = 0; length < good.size(); ++length) {
    const Error error = parse_error_metadata(std::string_view(good).substr(0, length));
    EXPECT_EQ(error.code, ErrorCode::kPeerError) << length;
  }
  for (const char* text :
       {"{}", "[]", "{\"code\": \"x\"}", "{\"code\": 0}", "{\"code\": 70000}",
        "{\"code\": 1 \"rank\": 2}", "{\"code\": 1, \"message\": \"\\q\"}",
        "{\"code\": 99999999999999999999}", "{\"message\": \"\\u00\"}", "{\"a\": \"\\u0g00\"}"}) {
    EXPECT_EQ(parse_error_metadata(text).code, ErrorCode::kPeerError) << text;
  }
  EXPECT_EQ(parse_error_metadata(" { \"code\" : 41 , \"new\" : \"x\", \"other\" : -3 } ").code,
            ErrorCode::kPeerLost);
}

TEST(TranslateError, MismatchSeenFromTheOtherSide) {
  const Error third = translate_error(mismatch(), 1, 0);
  EXPECT_EQ(third.code, ErrorCode::kPeerMismatch);
  EXPECT_EQ(third.mine, "lossless");
  EXPECT_EQ(third.rank, 2);
  const Error about_me = translate_error(mismatch(), 1, 2);
  EXPECT_EQ(about_me.code, ErrorCode::kPeerMismatch);
  EXPECT_EQ(about_me.mine, "none");
  EXPECT_EQ(about_me.theirs, "lossless");
  EXPECT_EQ(about_me.rank, 1);
}

TEST(TranslateError, LostRanksKeepTheirName) {
  Error lost;
  lost.code = ErrorCode::kPeerLost;
  lost.message = "rank 2 has left the group";
  lost.rank = 2;
  const Error third = translate_error(lost, 1, 0);
  EXPECT_EQ(third.code, ErrorCode::kPeerLost);
  EXPECT_EQ(third.rank, 2);
  EXPECT_EQ(third.message, "rank 2 has left the group (reported by rank 1)");
  EXPECT_EQ(translate_error(third, 3, 0).message, third.message) << "said once is enough";
  const Error about_me = translate_error(lost, 1, 2);
  EXPECT_EQ(about_me.code, ErrorCode::kPeerError);
  EXPECT_EQ(about_me.rank, 1);
}

TEST(TranslateError, OtherErrorsAreOfThatRank) {
  Error corrupt;
  corrupt.code = ErrorCode::kBlockChecksum;
  corrupt.message = "block 3";
  corrupt.rank = 0;
  const Error error = translate_error(corrupt, 1, 2);
  EXPECT_EQ(error.code, ErrorCode::kPeerError);
  EXPECT_EQ(error.rank, 1);
  EXPECT_EQ(error.message, "rank 1: BlockChecksum: block 3");
  // Passed on by a third rank it is still the first one's.
  const Error relayed = translate_error(error, 0, 2);
  EXPECT_EQ(relayed.rank, 1);
  EXPECT_EQ(relayed.code, ErrorCode::kPeerError);
  const Error unreadable = translate_error(parse_error_metadata("?"), 1, 2);
  EXPECT_EQ(unreadable.rank, 1);
}

}  // namespace
}  // namespace gradwire::internal
