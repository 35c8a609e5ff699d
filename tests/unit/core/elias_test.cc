#include "core/elias.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace gradwire::internal {
namespace {

std::string digits(BitString code) {
  std::string text;
  for (unsigned i = 0; i < code.length; ++i) text += (code.bits >> i & 1u) != 0 ? '1' : '0';
  return text;
}

// As in Elias' paper and docs/format.md 4.6.
TEST(Elias, CodesOfTheFormat) {
  EXPECT_EQ(digits(elias_code(1)), "0");
  EXPECT_EQ(digits(elias_code(2)), "100");
  EXPECT_EQ(digits(elias_code(3)), "110");
  EXPECT_EQ(digits(elias_code(4)), "101000");
  EXPECT_EQ(digits(elias_code(7)), "101110");
  EXPECT_EQ(digits(elias_code(8)), "1110000");
  EXPECT_EQ(digits(elias_code(128)), "10111100000000");
}

TEST(Elias, ReadsWhatItWrote) {
  constexpr std::uint32_t kSeed = 11;
  std::mt19937 random(kSeed);
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 1; number <= kMostElias; ++number) numbers.push_back(number);
  for (int i = 0; i < 5000; ++i) numbers.push_back(1 + (random() % kMostElias >> random() % 8));
  std::vector<std::byte> bytes(2 * numbers.size());
  BitWriter writer(bytes);
  for (const std::uint32_t number : numbers) ASSERT_TRUE(writer.put(elias_code(number)));
  ASSERT_TRUE(writer.finish());
  bytes.resize(writer.bytes());
  BitReader reader(bytes);
  for (const std::uint32_t number : numbers) {
    std::uint32_t read = 0;
    ASSERT_TRUE(reader.elias(&read));
    ASSERT_EQ(read, number) << "seed " << kSeed;
  }
  EXPECT_TRUE(reader.at_end());
}

TEST(Elias, WriterStopsAtTheEndOfItsTarget) {
  std::vector<std::byte> bytes(3, std::byte{0xAA});
  BitWriter writer(std::span<std::byte>(bytes).first(2));
  EXPECT_TRUE(writer.put(elias_code(128)));
  EXPECT_TRUE(writer.put(elias_code(1)));
  EXPECT_TRUE(writer.put(elias_code(1)));
  EXPECT_FALSE(writer.put(elias_code(128)));
  EXPECT_EQ(bytes[2], std::byte{0xAA});
}

TEST(Elias, ReaderRefusesWhatIsNoCode) {
  std::uint32_t number = 0;
  const std::vector<std::byte> ones(4, std::byte{0xFF});
  EXPECT_FALSE(BitReader(ones).elias(&number)) << "would have more than eight digits";
  EXPECT_FALSE(BitReader({}).elias(&number));
  const std::vector<std::byte> cut = {std::byte{0x05}};  // 1 0 1 0 0 0 is 4
  BitReader reader(cut);
  EXPECT_TRUE(reader.elias(&number));
  EXPECT_EQ(number, 4u);
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(reader.elias(&number));
  EXPECT_TRUE(reader.elias(&number));
  EXPECT_FALSE(reader.elias(&number));
}

TEST(Elias, RestMustBeZerosOfTheLastByte) {
  const std::vector<std::byte> dirty = {std::byte{0x80}};
  std::uint32_t number = 0;
  BitReader reader(dirty);
  EXPECT_TRUE(reader.elias(&number));
  EXPECT_FALSE(reader.at_end());
  const std::vector<std::byte> longer(2, std::byte{0});
  BitReader other(longer);
  EXPECT_TRUE(other.elias(&number));
  EXPECT_FALSE(other.at_end());
}

}  // namespace
}  // namespace gradwire::internal
