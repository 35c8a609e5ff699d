#include "core/fp_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

namespace gradwire::internal {
namespace {

// Hides a value from the optimizer, so that arithmetic happens when the program runs.
float opaque(float value) {
  volatile float hidden = value;
  return hidden;
}

bool flushes_subnormals() { return opaque(std::numeric_limits<float>::min()) / opaque(2) == 0; }

#if defined(__x86_64__)

TEST(FpEnvironment, TurnsFlushingOffAndPutsItBack) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u);
  EXPECT_TRUE(flushes_subnormals());
  {
    const FpEnvironment environment;
    EXPECT_FALSE(flushes_subnormals());
    EXPECT_NE(opaque(std::numeric_limits<float>::denorm_min()) * opaque(2), 0);
  }
  EXPECT_TRUE(flushes_subnormals());
  EXPECT_EQ(_mm_getcsr() & 0x8040u, 0x8040u);
  _mm_setcsr(before);
}

TEST(FpEnvironment, DoesNotTrapAndPutsTheTrapsBack) {
  const unsigned before = _mm_getcsr();
  const unsigned trapping = before & ~0x1FBFu;  // all exceptions unmasked, none pending
  _mm_setcsr(trapping);
  {
    const FpEnvironment environment;
    EXPECT_FALSE(opaque(std::numeric_limits<float>::infinity()) * opaque(0) == 0);
    EXPECT_EQ(opaque(std::numeric_limits<float>::max()) * opaque(2),
              std::numeric_limits<float>::infinity());
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after, trapping);
}

#endif

TEST(FpEnvironment, RoundsToNearestAndPutsTheModeBack) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  EXPECT_GT(opaque(1) + opaque(0x1p-30f), 1);
  {
    const FpEnvironment environment;
    EXPECT_EQ(opaque(1) + opaque(0x1p-30f), 1);
  }
  EXPECT_GT(opaque(1) + opaque(0x1p-30f), 1);
  EXPECT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_FALSE(flushes_subnormals());
}

}  // namespace
}  // namespace gradwire::internal
