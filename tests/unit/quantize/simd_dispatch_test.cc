#include "core/simd_dispatch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "hwy/targets.h"
#include "quantize/float32_simd.h"

namespace gradwire::internal {
namespace {

// In a process of its own, in which no kernel has been called yet.
TEST(SimdDispatchDeathTest, TheFirstKernelAlreadyObeysTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto first_call = [] {
    setenv("GRADWIRE_TARGET", "portable", 1);
    const std::array<std::uint8_t, 64> tokens{};
    const bool any = any_escape_simd(tokens.data(), tokens.size());
    // The entry of Highway's tables behind all vector targets.
    const bool portable = hwy::GetChosenTarget().GetIndex() == HWY_MAX_DYNAMIC_TARGETS + 1;
    std::exit(portable && !any ? 0 : 1);
  };
  EXPECT_EXIT(first_call(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradwire::internal
