#include "frame/block_index.h"

#include <gtest/gtest.h>

#include <array>

namespace gradwire::internal {
namespace {

TEST(BlockIndex, FieldsLieWhereTheFormatSays) {
  std::array<std::byte, kBlockEntryBytes> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0xE0 + i);
  const BlockEntry entry = read_block_entry(bytes);
  EXPECT_EQ(entry.length, 0xE3E2E1E0u);
  EXPECT_EQ(static_cast<int>(entry.kind), 0xE4);
  EXPECT_EQ(entry.lanes, 0xE5);
  EXPECT_EQ(entry.plane_bytes, 0xE6);
  EXPECT_EQ(entry.scale_bits, 0xE7);
  EXPECT_EQ(entry.scale_base, static_cast<std::int16_t>(0xE9E8));
  EXPECT_EQ(entry.mantissa, 0xEA);
  EXPECT_EQ(entry.flags, 0xEB);
  EXPECT_EQ(entry.word_count, 0xEFEEEDECu);
  EXPECT_EQ(entry.outlier_count, 0xF3F2F1F0u);
  EXPECT_EQ(entry.reserved, 0xF7F6F5F4u);
  EXPECT_EQ(entry.hash, 0xFFFEFDFCFBFAF9F8u);
  std::array<std::byte, kBlockEntryBytes> back{};
  write_block_entry(entry, back);
  EXPECT_EQ(back, bytes);
}

TEST(BlockIndex, FieldsFillTheEntry) {
  BlockEntry entry;
  std::size_t end = 0;
  visit_block_entry(entry, [&]<typename T>(std::size_t offset, T&) {
    EXPECT_EQ(offset, end);
    end = offset + sizeof(T);
  });
  EXPECT_EQ(end, kBlockEntryBytes);
}

}  // namespace
}  // namespace gradwire::internal
