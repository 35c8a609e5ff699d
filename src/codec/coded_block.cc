#include "codec/coded_block.h"

#include <algorithm>
#include <bit>

#include "frame/limits.h"

namespace gradwire::internal {
namespace {

// Half octaves of X, from 2^-8.25 on: floor(2 log2 X + 16.5) by way of X^4, whose logarithm is
// its exponent.
std::int32_t step_level(double x) noexcept {
  const double x4 = (x * x) * (x * x);
  const std::int32_t log2_x4 =
      static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x4) >> 52) - 1023;
  return std::clamp((log2_x4 + 33) >> 1, 0, kStepTables - 1);
}

// About X of the same step relative to the RMS: a group of gradients has a range of about 8 and a
// largest magnitude of about 4 RMS. Of an absolute step nothing is known.
double step_over_rms(const CodecSpec& spec) noexcept {
  switch (spec.scale) {
    case BoundScale::kRange:
      return 8 * step_factor(spec);
    case BoundScale::kAbsMax:
      return 4 * step_factor(spec);
    case BoundScale::kAbsolute:
      return 0.25;
    default:
      return step_factor(spec);
  }
}

}  // namespace

std::uint8_t coded_table(const CodecSpec& spec) noexcept {
  if (!is_step_form(spec)) return kExponentTable;
  return static_cast<std::uint8_t>(kFirstStepTable + step_level(step_over_rms(spec)));
}

}  // namespace gradwire::internal
