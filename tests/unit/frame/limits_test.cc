#include "frame/limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace gradwire::internal {
namespace {

TEST(Limits, RangesHoldMultiplesOnly) {
  EXPECT_TRUE(kBlockValuesRange.contains(4096) && kBlockValuesRange.contains(1048576));
  EXPECT_FALSE(kBlockValuesRange.contains(0) || kBlockValuesRange.contains(4097));
  EXPECT_FALSE(kBlockValuesRange.contains(1048576 + 4096));
  EXPECT_FALSE(kBlockValuesRange.contains((std::uint64_t{1} << 32) + 4096));
}

TEST(Limits, RealRangesTakeNeitherNaNNorMinusZero) {
  const RealRange range{0.5, 2, false};
  EXPECT_TRUE(range.contains(0.5) && range.contains(2));
  EXPECT_FALSE(range.contains(0) || range.contains(0.499) || range.contains(2.001));
  EXPECT_FALSE(range.contains(-1) || range.contains(std::nan("")));
  const RealRange or_zero{0.5, 2, true};
  EXPECT_TRUE(or_zero.contains(0.0) && or_zero.contains(1));
  EXPECT_FALSE(or_zero.contains(-0.0) || or_zero.contains(0.25));
  EXPECT_TRUE(RealRange{}.contains(0.0));
  EXPECT_FALSE(RealRange{}.contains(-0.0) || RealRange{}.contains(1));
}

TEST(Limits, TextsNameWhatIsAllowed) {
  EXPECT_EQ(range_text(Range{8, 4096, 8}), "from 8 to 4096, a multiple of 8");
  EXPECT_EQ(range_text(Range{2, 16, 1}), "from 2 to 16");
  EXPECT_EQ(range_text(Range{32, 32, 1}), "32 for this codec");
  EXPECT_EQ(range_text(Range{}), "0 for this codec");
  EXPECT_EQ(range_text(RealRange{0x1p-8, 8, false}), "from 0.00390625 to 8");
  EXPECT_EQ(range_text(RealRange{1, 8, true}), "0 or from 1 to 8");
  EXPECT_EQ(bits_text(1u << 4 | 1u << 6 | 1u << 8), "4, 6 or 8");
  EXPECT_EQ(bits_text(1u << 4), "4");
  EXPECT_EQ(bits_text(0), "0 for this codec");
  EXPECT_EQ(dtypes_text(1u << 3 | 1u << 4), "float16 or bfloat16");
  EXPECT_EQ(roundings_text(3), "nearest or stochastic");
}

TEST(Limits, EachCodecTakesItsTypes) {
  const std::map<int, int> expected = {{0, 15}, {1, 2}, {2, 4}, {3, 4}, {4, 4}, {5, 4}};
  for (int codec = 0; codec < 256; ++codec) {
    int taken = 0;
    for (int number = 0; number < 256; ++number) {
      taken += codec_takes(static_cast<CodecId>(codec), static_cast<DType>(number));
    }
    const bool known = find_limits(static_cast<CodecId>(codec)) != nullptr;
    const auto place = expected.find(codec);
    EXPECT_EQ(taken, place != expected.end() ? place->second : known ? 1 : 0) << codec;
  }
  EXPECT_EQ(all_dtypes().size(), 15u);
  EXPECT_EQ(codec_name(CodecId{255}), "unknown");
  EXPECT_EQ(codec_name(CodecId::kNatural), "natural");
}

}  // namespace
}  // namespace gradwire::internal
