#include "core/bit_array.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

// The definition: bit j of the array is bit j mod 8 of byte j / 8.
std::uint32_t plain_get(const std::vector<std::byte>& bytes, std::uint64_t index, unsigned width) {
  std::uint32_t value = 0;
  for (unsigned bit = 0; bit < width; ++bit) {
    const std::uint64_t place = index * width + bit;
    const auto byte = std::to_integer<std::uint32_t>(bytes[static_cast<std::size_t>(place / 8)]);
    value |= ((byte >> (place % 8)) & 1u) << bit;
  }
  return value;
}

TEST(BitArray, WorkedExample) {
  const std::uint8_t values[] = {5, 2, 7};  // 3 bits each: 1 1110 1010 1 from the top
  std::vector<std::byte> bytes(2);
  BitPacker packer(bytes.data(), 3);
  packer.append(values, 3);
  EXPECT_EQ(packer.finish(), bytes.data() + 2);
  EXPECT_EQ(bytes[0], std::byte{0b11010101});
  EXPECT_EQ(bytes[1], std::byte{0b1});
}

TEST(BitArray, PacksAndUnpacksEveryWidthInAnyPieces) {
  std::mt19937 random(3);
  for (unsigned width = 0; width <= 16; ++width) {
    for (std::size_t count : {0, 1, 2, 7, 8, 9, 16, 17, 63, 100}) {
      std::vector<std::uint16_t> values(count);
      for (auto& value : values) value = static_cast<std::uint16_t>(random());
      const auto size = static_cast<std::size_t>(bit_array_bytes(count, width));
      ASSERT_EQ(size, (count * width + 7) / 8);
      for (std::size_t cut = 0; cut <= count; cut += 1 + cut / 4) {
        // One byte more, which must stay as it is.
        std::vector<std::byte> bytes(size + 1, std::byte{0xEE});
        BitPacker packer(bytes.data(), width);
        packer.append(values.data(), cut);
        packer.append(values.data() + cut, count - cut);
        ASSERT_EQ(packer.finish(), bytes.data() + size) << width << " " << count << " " << cut;
        ASSERT_EQ(bytes[size], std::byte{0xEE});
        bytes.resize(size);
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint32_t expected = values[i] & ((1u << width) - 1u);
          ASSERT_EQ(plain_get(bytes, i, width), expected) << width << " " << count << " " << i;
          ASSERT_EQ(bit_array_get(bytes, i, width), expected);
        }
        if (count * width % 8 != 0) {
          ASSERT_EQ(std::to_integer<unsigned>(bytes.back()) >> (count * width % 8), 0u);
        }
        std::vector<std::uint16_t> back(count - cut);
        unpack_bits(bytes, cut, count - cut, width, back.data());
        for (std::size_t i = cut; i < count; ++i) {
          ASSERT_EQ(back[i - cut], values[i] & ((1u << width) - 1u));
        }
      }
    }
  }
}

TEST(BitArray, NegativeNumbersKeepTheirLowBits) {
  const std::int8_t values[] = {-1, -8, 7, 0};
  std::vector<std::byte> bytes(2);
  BitPacker packer(bytes.data(), 4);
  packer.append(values, 4);
  packer.finish();
  EXPECT_EQ(bytes[0], std::byte{0x8F});
  EXPECT_EQ(bytes[1], std::byte{0x07});
}

TEST(BitArray, BitsBeyondTheEndReadAsZero) {
  const std::vector<std::byte> bytes(2, std::byte{0xFF});
  EXPECT_EQ(bit_array_get(bytes, 1, 12), 0xFu);
  EXPECT_EQ(bit_array_get(bytes, 2, 12), 0u);
  EXPECT_EQ(bit_array_get({}, 0, 16), 0u);
}

}  // namespace
}  // namespace gradwire::internal
