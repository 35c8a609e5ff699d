#include "codec/coded_block.h"

#include <algorithm>
#include <bit>

namespace gradwire::internal {
namespace {

constexpr std::uint8_t kExponentTable = 1;
constexpr std::uint8_t kFirstStepTable = 16;
constexpr std::int32_t kStepLevels = 23;

// Half octaves of X, from 2^-8.25 on: floor(2 log2 X + 16.5) by way of X^4, whose logarithm is
// its exponent.
std::int32_t step_level(double x) noexcept {
  const double x4 = (x * x) * (x * x);
  const std::int32_t log2_x4 =
      static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x4) >> 52) - 1023;
  return std::clamp((log2_x4 + 33) >> 1, 0, kStepLevels - 1);
}

}  // namespace

std::uint8_t coded_table(const CodecSpec& spec) noexcept {
  if (!is_step_form(spec)) return kExponentTable;
  return static_cast<std::uint8_t>(kFirstStepTable + step_level(spec.step));
}

bool is_coded_table(const CodecSpec& spec, std::uint8_t table) noexcept {
  if (!is_step_form(spec)) return table == kExponentTable;
  return table >= kFirstStepTable && table < kFirstStepTable + kStepLevels;
}

}  // namespace gradwire::internal
