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

}  // namespace
}  // namespace gradwire::internal
