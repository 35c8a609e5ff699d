#include "frame/frame_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/checksum.h"
#include "frame/frame_reader.h"

namespace gradwire::internal {
namespace {

// Two parts (2, 1 values) of uint8, one stored block, three bytes of metadata.
FrameHeader small_header() {
  FrameHeader header;
  header.dtype = DType::kUInt8;
  header.block_values = 4096;
  header.segment_count = 1;
  header.part_count = 2;
  header.block_count = 1;
  header.metadata_bytes = 3;
  header.value_count = 3;
  return header;
}

constexpr std::size_t kSmallHeaderLength = 128 + 16 + 32 + 3;

BlockEntry stored(std::uint32_t length) {
  BlockEntry entry;
  entry.length = length;
  return entry;
}

TEST(FrameWriter, WritesAFrameThatTheReaderTakes) {
  std::vector<std::byte> out(kSmallHeaderLength + 10, std::byte{0xEE});
  Result<FrameWriter> writer = FrameWriter::begin(small_header(), out);
  ASSERT_TRUE(writer.ok());
  writer->part(2);
  writer->part(1);
  writer->metadata("abc");
  EXPECT_EQ(writer->free_space().data(), out.data() + kSmallHeaderLength);
  EXPECT_EQ(writer->free_space().size(), 10u);
  for (std::size_t i = 0; i < 3; ++i) writer->free_space()[i] = static_cast<std::byte>(i);
  BlockEntry entry = stored(3);
  entry.hash = hash64(writer->free_space().first(3));
  writer->block(entry);
  const Result<std::size_t> length = writer->finish();
  ASSERT_TRUE(length.ok());
  ASSERT_EQ(*length, kSmallHeaderLength + 3);
  EXPECT_EQ(out[*length], std::byte{0xEE});

  const Result<FrameView> view = FrameView::open(std::span(out).first(*length));
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_EQ(view->header().encoded_length, *length);
  EXPECT_EQ(view->part_values(0), 2u);
  EXPECT_EQ(view->part_values(1), 1u);
  EXPECT_EQ(view->metadata(), "abc");
  EXPECT_EQ(view->block_values(0), 3u);
  ASSERT_EQ(view->blocks().size(), 3u);
  EXPECT_EQ(view->block(0).hash, hash64(view->blocks()));
}

TEST(FrameWriter, NeedsRoomForTheTables) {
  std::vector<std::byte> out(kSmallHeaderLength - 1);
  const Result<FrameWriter> writer = FrameWriter::begin(small_header(), out);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ErrorCode::kBufferTooSmall);
  EXPECT_EQ(writer.error().field, "out");
}

// finish() after `calls`, on a buffer with room for a block of three bytes.
template <typename Calls>
ErrorCode finish_after(Calls calls) {
  std::vector<std::byte> out(kSmallHeaderLength + 3);
  FrameWriter writer = *FrameWriter::begin(small_header(), out);
  calls(writer);
  const Result<std::size_t> length = writer.finish();
  return length.ok() ? ErrorCode{0} : length.error().code;
}

TEST(FrameWriter, WrongUseIsAnInternalError) {
  const auto complete = [](FrameWriter& writer) {
    writer.part(2);
    writer.part(1);
    writer.metadata("abc");
    writer.block(stored(3));
  };
  EXPECT_EQ(finish_after(complete), ErrorCode{0});
  EXPECT_EQ(finish_after([](FrameWriter&) {}), ErrorCode::kInternal);
  EXPECT_EQ(finish_after([&](FrameWriter& writer) { complete(writer), writer.part(0); }),
            ErrorCode::kInternal);
  EXPECT_EQ(finish_after([&](FrameWriter& writer) { complete(writer), writer.metadata("d"); }),
            ErrorCode::kInternal);
  EXPECT_EQ(finish_after([&](FrameWriter& writer) { complete(writer), writer.block(stored(0)); }),
            ErrorCode::kInternal);
  EXPECT_EQ(finish_after([&](FrameWriter& writer) { writer.block(stored(4)), complete(writer); }),
            ErrorCode::kInternal);
}

}  // namespace
}  // namespace gradwire::internal
