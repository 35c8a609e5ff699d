#include "codec/index_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

struct Coded {
  IndexListLayout layout;
  std::vector<std::byte> low;
  std::vector<std::byte> high;
};

Coded write(std::uint64_t count, const std::vector<std::uint32_t>& indices) {
  Coded coded;
  coded.layout = index_list_layout(count, indices.size());
  coded.low.resize(static_cast<std::size_t>(coded.layout.low_bytes));
  coded.high.resize(static_cast<std::size_t>(coded.layout.high_bytes));
  IndexListWriter writer(coded.layout, coded.low, coded.high);
  for (const std::uint32_t index : indices) writer.put(index);
  writer.finish();
  return coded;
}

// The indices until one is refused.
std::vector<std::uint32_t> read(std::uint64_t count, const Coded& coded) {
  IndexListReader reader(coded.layout, count, coded.low, coded.high);
  std::vector<std::uint32_t> indices;
  std::uint32_t index = 0;
  while (reader.next(&index)) indices.push_back(index);
  return indices;
}

TEST(IndexList, ComesBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t count = 1 + random() % (round % 10 == 0 ? 1048576 : 500);
    const std::uint32_t one_in = 1 + random() % 50;
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (random() % one_in == 0) indices.push_back(i);
    }
    const Coded coded = write(count, indices);
    ASSERT_EQ(read(count, coded), indices) << round;
    IndexListReader reader(coded.layout, count, coded.low, coded.high);
    for (std::uint32_t index = 0; reader.next(&index);) continue;
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(IndexList, ExtremesComeBack) {
  const std::vector<std::vector<std::uint32_t>> lists = {
      {}, {0}, {1048575}, {0, 1048575}, {5, 6, 7}};
  for (const auto& indices : lists) EXPECT_EQ(read(1048576, write(1048576, indices)), indices);
  EXPECT_EQ(read(3, write(3, {0, 1, 2})), (std::vector<std::uint32_t>{0, 1, 2}));
}

// 2 + log2(n / k) bits for each, at most.
TEST(IndexList, TakesNoMoreThanItsFormula) {
  for (const std::uint64_t kept : {10u, 100u, 1000u, 26214u, 262144u}) {
    const IndexListLayout layout = index_list_layout(262144, kept);
    const double bits = 8.0 * static_cast<double>(layout.low_bytes + layout.high_bytes);
    EXPECT_LE(bits, static_cast<double>(kept) * (2 + std::log2(262144.0 / kept)) + 16) << kept;
  }
}

TEST(IndexList, WrongBytesAreRefused) {
  const std::vector<std::uint32_t> indices = {3, 9, 17, 40};
  Coded coded = write(64, indices);
  ASSERT_EQ(coded.layout.low_bits, 4u);
  Coded smaller = coded;  // two equal indices
  smaller.low[0] = std::byte{0x99};
  EXPECT_EQ(read(64, smaller), (std::vector<std::uint32_t>{9}));
  EXPECT_EQ(read(40, coded), (std::vector<std::uint32_t>{3, 9, 17}));
  Coded fewer = coded;
  fewer.high.assign(fewer.high.size(), std::byte{0});
  EXPECT_TRUE(read(64, fewer).empty());
}

}  // namespace
}  // namespace gradwire::internal
