#include "quantize/top_magnitudes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gradwire::internal {
namespace {

std::vector<std::size_t> chosen(std::uint64_t wanted, const std::vector<std::uint32_t>& values) {
  TopMagnitudes top = top_magnitudes(wanted, [&](auto visit) {
    for (const std::uint32_t value : values) visit(value);
  });
  const std::uint64_t kept = top.kept;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (top.take(values[i])) places.push_back(i);
  }
  EXPECT_EQ(places.size(), kept);
  return places;
}

// By sorting.
std::vector<std::size_t> expected(std::uint64_t wanted, const std::vector<std::uint32_t>& values) {
  const auto infinite = static_cast<std::uint64_t>(std::count_if(
      values.begin(), values.end(), [](std::uint32_t v) { return v >= kFloat32Inf; }));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) places.push_back(i);
  }
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  places.resize(std::min<std::uint64_t>(places.size(), std::max(wanted, infinite)));
  std::sort(places.begin(), places.end());
  return places;
}

TEST(TopMagnitudes, AreThoseThatSortingFinds) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> values(random() % 300);
    // Few distinct ones, so that there are ties, of all sizes.
    const unsigned drop = random() % 31;
    for (std::uint32_t& value : values) {
      value = ((random() & kFloat32Magnitude) >> drop) << (random() % (drop + 1));
      if (random() % 4 == 0) value = 0;
    }
    for (const std::uint64_t wanted : {0, 1, 2, 7, 100, 1000}) {
      ASSERT_EQ(chosen(wanted, values), expected(wanted, values)) << round << " " << wanted;
    }
  }
}

TEST(TopMagnitudes, TiesGoToTheFirst) {
  const std::vector<std::uint32_t> values = {5, 7, 5, 5, 0, 7};
  EXPECT_EQ(chosen(3, values), (std::vector<std::size_t>{0, 1, 5}));
  EXPECT_EQ(chosen(4, values), (std::vector<std::size_t>{0, 1, 2, 5}));
  EXPECT_EQ(chosen(6, values), (std::vector<std::size_t>{0, 1, 2, 3, 5}));
}

TEST(TopMagnitudes, AllNonFiniteValuesAreKept) {
  const std::vector<std::uint32_t> values = {1, kFloat32Inf, 2, 0x7FC00000u, kFloat32Inf};
  EXPECT_EQ(chosen(1, values), (std::vector<std::size_t>{1, 3, 4}));
}

TEST(TopMagnitudes, PartOfACountIsRoundedUp) {
  EXPECT_EQ(part_of(0.25, 8), 2u);
  EXPECT_EQ(part_of(0.25, 9), 3u);
  EXPECT_EQ(part_of(1, 7), 7u);
  EXPECT_EQ(part_of(0x1p-20, 1), 1u);
  EXPECT_EQ(part_of(0.5, 0), 0u);
}

}  // namespace
}  // namespace gradwire::internal
