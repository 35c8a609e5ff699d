#include "frame/limits.h"

#include <gtest/gtest.h>

#include <array>

namespace gradwire::internal {
namespace {

TEST(Limits, RangesHoldMultiplesOnly) {
  EXPECT_TRUE(kBlockValuesRange.contains(4096) && kBlockValuesRange.contains(1048576));
  EXPECT_FALSE(kBlockValuesRange.contains(0) || kBlockValuesRange.contains(4097));
  EXPECT_FALSE(kBlockValuesRange.contains(1048576 + 4096));
  EXPECT_FALSE(kBlockValuesRange.contains((std::uint64_t{1} << 32) + 4096));
}

TEST(Limits, EachCodecTakesItsTypes) {
  const std::array<int, 5> expected = {15, 2, 1, 4, 1};  // by codec number
  for (int codec = 0; codec < 256; ++codec) {
    int taken = 0;
    for (int number = 0; number < 256; ++number) {
      taken += codec_takes(static_cast<CodecId>(codec), static_cast<DType>(number));
    }
    EXPECT_EQ(taken, codec < 5 ? expected[static_cast<std::size_t>(codec)] : 0) << codec;
  }
  EXPECT_EQ(all_dtypes().size(), 15u);
  EXPECT_EQ(codec_name(CodecId{5}), "unknown");
}

}  // namespace
}  // namespace gradwire::internal
