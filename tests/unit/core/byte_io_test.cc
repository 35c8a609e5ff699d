#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "core/byte_reader.h"
#include "core/byte_writer.h"

namespace gradwire::internal {
namespace {

TEST(ByteWriter, WritesLittleEndianAndStopsAtTheEnd) {
  std::array<std::byte, 8> bytes{};
  ByteWriter writer{std::span(bytes).first(7)};
  EXPECT_TRUE(writer.write<std::uint32_t>(0x01020304));
  EXPECT_EQ(bytes[0], std::byte{4});
  EXPECT_EQ(bytes[3], std::byte{1});
  EXPECT_EQ(writer.position(), 4u);
  EXPECT_FALSE(writer.write<std::uint32_t>(0xFFFFFFFF));
  EXPECT_EQ(writer.position(), 4u);
  EXPECT_TRUE(writer.write<std::uint16_t>(0x0506));
  EXPECT_FALSE(writer.write<std::uint16_t>(0xFFFF));
  EXPECT_TRUE(writer.write<std::uint8_t>(7));
  EXPECT_EQ(writer.remaining(), 0u);
  EXPECT_FALSE(writer.write<std::uint8_t>(8));
  EXPECT_EQ(bytes[6], std::byte{7});
  EXPECT_EQ(bytes[7], std::byte{0});
}

TEST(ByteWriter, TakesAndCopiesWhatFits) {
  std::array<std::byte, 4> bytes{};
  const std::array<std::byte, 3> source{std::byte{1}, std::byte{2}, std::byte{3}};
  ByteWriter writer(bytes);
  std::span<std::byte> taken;
  EXPECT_FALSE(writer.take(5, &taken));
  EXPECT_FALSE(writer.take(std::uint64_t{1} << 63, &taken));
  EXPECT_TRUE(writer.take(2, &taken));
  EXPECT_EQ(taken.data(), bytes.data());
  EXPECT_FALSE(writer.write_bytes(source));
  EXPECT_TRUE(writer.write_bytes(std::span(source).first(2)));
  EXPECT_EQ(bytes[3], std::byte{2});
  EXPECT_TRUE(writer.write_bytes({}));
  EXPECT_EQ(writer.position(), 4u);
}

TEST(ByteReader, ReadsWhatTheWriterWrote) {
  std::array<std::byte, 11> bytes{};
  ByteWriter writer(bytes);
  ASSERT_TRUE(writer.write<std::int16_t>(-2) && writer.write(2.5) && writer.write<std::uint8_t>(9));
  ByteReader reader(bytes);
  std::int16_t small = 0;
  double real = 0;
  std::uint8_t byte = 0;
  EXPECT_TRUE(reader.read(&small) && reader.read(&real) && reader.read(&byte));
  EXPECT_EQ(small, -2);
  EXPECT_EQ(real, 2.5);
  EXPECT_EQ(byte, 9);
  EXPECT_FALSE(reader.read(&byte));
}

TEST(ByteReader, RefusesWhatIsNotThere) {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  ByteReader reader(bytes);
  std::uint32_t word = 77;
  EXPECT_FALSE(reader.read(&word));
  EXPECT_EQ(word, 77u);
  EXPECT_EQ(reader.position(), 0u);
  std::span<const std::byte> taken;
  EXPECT_FALSE(reader.take(4, &taken));
  EXPECT_FALSE(reader.take(~std::uint64_t{0}, &taken));
  EXPECT_TRUE(reader.take(3, &taken));
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_TRUE(reader.take(0, &taken));
  EXPECT_EQ(reader.remaining(), 0u);
}

}  // namespace
}  // namespace gradwire::internal
