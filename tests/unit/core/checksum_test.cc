#include "core/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace gradwire::internal {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// One bit at a time: the definition.
std::uint32_t plain_crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

TEST(Checksum, Crc32cKnownValues) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
}

TEST(Checksum, Crc32cOfAnyLengthInAnyTwoPieces) {
  std::mt19937 random(2);
  std::vector<std::byte> bytes(67);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::span<const std::byte> all = std::span(bytes).first(length);
    const std::uint32_t expected = plain_crc32c(all);
    for (std::size_t cut = 0; cut <= length; ++cut) {
      ASSERT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), expected) << length << " " << cut;
    }
  }
}

TEST(Checksum, Hash64IsXxh3WithSeedZero) {
  EXPECT_EQ(hash64({}), 0x2D06800538D394C2u);
  EXPECT_NE(hash64(bytes_of("a")), hash64(bytes_of("b")));
}

// Of xxHash 0.8.1; the vector code takes over from 1024 bytes on.
TEST(Checksum, Hash64OfEveryLength) {
  struct Known {
    std::size_t size;
    std::uint64_t hash;
  };
  constexpr Known kKnown[] = {
      {241, 0x6E0351C4E08D01F1u},   {1023, 0xE6096DD67F0703A5u},   {1024, 0x7B8E4D1536B7C54Du},
      {1025, 0x53FB4E0C96B23C00u},  {1088, 0x1A64C088B25785E8u},   {1089, 0x1BE03527901F6DC0u},
      {2048, 0x2319DF49F5E4523Eu},  {2049, 0xA328F86DFE006039u},   {5000, 0x4D49AB98BB97A58Cu},
      {65536, 0xBA12490061613481u}, {100003, 0x08B8A2C987C4EDCBu},
  };
  for (const Known& known : kKnown) {
    for (const std::size_t shift : {0u, 1u}) {
      std::vector<std::byte> bytes(known.size + shift);
      for (std::size_t i = 0; i < known.size; ++i) {
        bytes[i + shift] = static_cast<std::byte>((i * i * 31 + i / 7) & 255u);
      }
      EXPECT_EQ(hash64(std::span(bytes).subspan(shift)), known.hash) << known.size;
    }
  }
}

}  // namespace
}  // namespace gradwire::internal
