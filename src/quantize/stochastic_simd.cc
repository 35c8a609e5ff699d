#include "quantize/stochastic_simd.h"

#include <algorithm>
#include <bit>

#include "quantize/step_form_format.h"
#include "quantize/value_range_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/stochastic_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/int_conversions-inl.h"
#include "core/noise_vectors-inl.h"
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors the plain kernels are the best ones.
bool round_to_step(const std::uint32_t* values, std::uint32_t count, StepGrid grid,
                   NoisePlace place, std::uint32_t* rounded) {
  return round_to_step_ref<Float32Format>(values, count, grid, place, rounded);
}
void round_to_mantissa(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                       NoisePlace place, std::uint32_t* rounded) {
  round_to_mantissa_ref<Float32Format>(values, count, mantissa, place, rounded);
}
ValueRange value_range(const std::uint32_t* values, std::size_t count) {
  return value_range_ref<Float32Format>(values, count);
}

#else

using D32 = hn::ScalableTag<std::uint32_t>;
using DI32 = hn::RebindToSigned<D32>;
using DF32 = hn::RebindToFloat<D32>;
using V32 = hn::Vec<D32>;
using VI32 = hn::Vec<DI32>;

// One multiplication by 2^(16 - k) is exact where it matters, whatever flush-to-zero does: at
// k >= -108 a subnormal is below a quarter of 2^(k - 16), and t = 0 in both ways; at k <= 112
// neither 2^(16 - k) nor q 2^k other than 0 leaves the normal numbers.
constexpr std::int32_t kFastMin = -108;
constexpr std::int32_t kFastMax = kStepFastMax;

constexpr std::int32_t bits_of(float x) { return std::bit_cast<std::int32_t>(x); }

// Splits the values into what goes through vectors and what does not: an odd first one, the last
// ones, or all where the count of pairs would leave 32 bits.
struct Split {
  std::uint32_t head = 0;
  std::uint32_t whole = 0;
};
HWY_INLINE Split split(std::uint32_t count, NoisePlace place) {
  const auto n = 2 * static_cast<std::uint32_t>(hn::Lanes(D32()));
  const auto head = std::min(static_cast<std::uint32_t>(place.index & 1), count);
  const bool fits = ((place.index / 2) & 0xFFFFFFFFu) + count <= 0xFFFFFFFFu;
  return {head, fits ? (count - head) / n * n : 0};
}
HWY_INLINE NoisePlace moved(NoisePlace place, std::uint32_t by) {
  return {place.key, place.index + by};
}

// ---- step ----

struct StepRounding {
  hn::Vec<DF32> scale, unit;
  VI32 filter;  // patterns of |x| 2^(16 - k) below it become 0
};

HWY_INLINE V32 round_step(V32 x, V32 noise, const StepRounding& rounding) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const auto scaled = hn::Mul(hn::BitCast(df, x), rounding.scale);
  const auto magnitude = hn::And(hn::BitCast(di, scaled), hn::Set(di, 0x7FFFFFFF));
  const auto t = nearest_in_range(scaled);
  const auto q = hn::ShiftRight<16>(hn::Add(t, hn::BitCast(di, noise)));
  const auto point = hn::BitCast(di, hn::Mul(hn::ConvertTo(df, q), rounding.unit));
  const auto kept = hn::IfThenZeroElse(hn::Lt(magnitude, rounding.filter), point);
  // 2^27 and more, NaN included.
  const auto outside = hn::Gt(magnitude, hn::Set(di, bits_of(0x1p27f) - 1));
  return hn::BitCast(d, hn::IfThenElse(outside, hn::BitCast(di, x), kept));
}

bool round_to_step(const std::uint32_t* values, std::uint32_t count, StepGrid grid,
                   NoisePlace place, std::uint32_t* rounded) {
  const D32 d;
  if (grid.k < kFastMin || grid.k > kFastMax) {
    return round_to_step_ref<Float32Format>(values, count, grid, place, rounded);
  }
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  const Split parts = split(count, place);
  bool any =
      parts.head != 0 && round_to_step_ref<Float32Format>(values, parts.head, grid, place, rounded);
  const StepRounding rounding = {hn::Set(DF32(), power_of_two(16 - grid.k)),
                                 hn::Set(DF32(), power_of_two(grid.k)),
                                 hn::Set(DI32(), grid.filter ? bits_of(0x1p16f) : 0)};
  const NoisePlace rest = moved(place, parts.head);
  NoiseVectors noise(rest.key, rest.index / 2, hn::Iota(d, 0));
  auto all = hn::Zero(d);
  const std::uint32_t end = parts.head + parts.whole;
  for (std::uint32_t i = parts.head; i < end; i += 2 * n) {
    V32 first, second;
    noise.next(&first, &second);
    const V32 a = round_step(hn::LoadU(d, values + i), first, rounding);
    const V32 b = round_step(hn::LoadU(d, values + i + n), second, rounding);
    hn::StoreU(a, d, rounded + i);
    hn::StoreU(b, d, rounded + i + n);
    all = hn::Or(all, hn::Or(a, b));
  }
  any = any || !hn::AllTrue(d, hn::Eq(all, hn::Zero(d)));
  if (end == count) return any;
  return round_to_step_ref<Float32Format>(values + end, count - end, grid, moved(place, end),
                                          rounded + end) ||
         any;
}

// ---- mantissa ----

struct MantissaRounding {
  int drop = 0;
  int noise_down = 0;  // less than 16 bits are dropped: noise loses its lowest bits
  int value_down = 0;  // more than 16 bits are dropped: values are rounded first
};

HWY_INLINE V32 round_mantissa(V32 x, V32 noise, const MantissaRounding& rounding) {
  const D32 d;
  const DI32 di;
  const auto magnitude = hn::And(x, hn::Set(d, Float32Format::kMagnitude));
  auto t = magnitude;
  if (rounding.value_down > 0) {
    const auto below_half = hn::Set(d, (1u << (rounding.value_down - 1)) - 1);
    const auto odd = hn::And(hn::ShiftRightSame(magnitude, rounding.value_down), hn::Set(d, 1u));
    t = hn::ShiftRightSame(hn::Add(magnitude, hn::Add(below_half, odd)), rounding.value_down);
  }
  const auto sum = hn::Add(t, hn::ShiftRightSame(noise, rounding.noise_down));
  const auto point = hn::ShiftLeftSame(hn::ShiftRightSame(sum, rounding.drop - rounding.value_down),
                                       rounding.drop);
  // Signed comparisons: magnitudes have no sign bit, and NaN with its carry is taken out below.
  const auto infinity = hn::Set(di, static_cast<std::int32_t>(Float32Format::kInfinity));
  const auto subnormal = hn::Set(di, static_cast<std::int32_t>(Float32Format::kHidden - 1));
  const auto in_range = hn::And(hn::Gt(hn::BitCast(di, magnitude), subnormal),
                                hn::Lt(hn::BitCast(di, magnitude), infinity));
  const auto takes = hn::And(in_range, hn::Lt(hn::BitCast(di, point), infinity));
  const auto result = hn::Or(point, hn::And(x, hn::Set(d, Float32Format::kSign)));
  return hn::IfThenElse(hn::RebindMask(d, takes), result, x);
}

void round_to_mantissa(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                       NoisePlace place, std::uint32_t* rounded) {
  const D32 d;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  const Split parts = split(count, place);
  round_to_mantissa_ref<Float32Format>(values, parts.head, mantissa, place, rounded);
  const int drop = static_cast<int>(Float32Format::kMantissaBits - mantissa);
  const MantissaRounding rounding = {drop, std::max(16 - drop, 0), std::max(drop - 16, 0)};
  const NoisePlace rest = moved(place, parts.head);
  NoiseVectors noise(rest.key, rest.index / 2, hn::Iota(d, 0));
  const std::uint32_t end = parts.head + parts.whole;
  for (std::uint32_t i = parts.head; i < end; i += 2 * n) {
    V32 first, second;
    noise.next(&first, &second);
    const V32 a = round_mantissa(hn::LoadU(d, values + i), first, rounding);
    const V32 b = round_mantissa(hn::LoadU(d, values + i + n), second, rounding);
    hn::StoreU(a, d, rounded + i);
    hn::StoreU(b, d, rounded + i + n);
  }
  round_to_mantissa_ref<Float32Format>(values + end, count - end, mantissa, moved(place, end),
                                       rounded + end);
}

// ---- range ----

ValueRange value_range(const std::uint32_t* values, std::size_t count) {
  const D32 d;
  const DI32 di;
  const std::size_t n = hn::Lanes(d);
  const std::size_t whole = count / n * n;
  constexpr std::int32_t kNothing = 0x7FFFFFFF;
  const auto infinity = hn::Set(di, static_cast<std::int32_t>(Float32Format::kInfinity));
  auto lowest = hn::Set(di, kNothing);
  auto highest = hn::Set(di, -kNothing);
  auto largest = hn::Zero(di);
  auto negative_zero = hn::Zero(d);
  for (std::size_t i = 0; i < whole; i += n) {
    const auto x = hn::LoadU(d, values + i);
    const auto magnitude = hn::BitCast(di, hn::And(x, hn::Set(d, Float32Format::kMagnitude)));
    const auto sign = hn::BroadcastSignBit(hn::BitCast(di, x));
    const auto ordered = hn::Sub(hn::Xor(magnitude, sign), sign);
    const auto finite = hn::Lt(magnitude, infinity);
    lowest = hn::Min(lowest, hn::IfThenElse(finite, ordered, hn::Set(di, kNothing)));
    highest = hn::Max(highest, hn::IfThenElse(finite, ordered, hn::Set(di, -kNothing)));
    largest = hn::Max(largest, magnitude);
    negative_zero =
        hn::Or(negative_zero, hn::VecFromMask(d, hn::Eq(x, hn::Set(d, Float32Format::kSign))));
  }
  ValueRange range;
  const std::int32_t low = hn::GetLane(hn::MinOfLanes(di, lowest));
  if (low != kNothing) {
    range.lowest = low;
    range.highest = hn::GetLane(hn::MaxOfLanes(di, highest));
  }
  range.nonfinite = hn::GetLane(hn::MaxOfLanes(di, largest)) >=
                    static_cast<std::int32_t>(Float32Format::kInfinity);
  range.negative_zero = !hn::AllTrue(d, hn::Eq(negative_zero, hn::Zero(d)));
  if (whole != count) range.add(value_range_ref<Float32Format>(values + whole, count - whole));
  return range;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(round_to_step);
HWY_EXPORT(round_to_mantissa);
HWY_EXPORT(value_range);

}  // namespace

bool round_to_step_float32(const std::uint32_t* values, std::uint32_t count, StepGrid grid,
                           NoisePlace place, std::uint32_t* rounded) noexcept {
  return GRADWIRE_DISPATCH(round_to_step)(values, count, grid, place, rounded);
}

void round_to_mantissa_float32(const std::uint32_t* values, std::uint32_t count,
                               std::uint32_t mantissa, NoisePlace place,
                               std::uint32_t* rounded) noexcept {
  GRADWIRE_DISPATCH(round_to_mantissa)(values, count, mantissa, place, rounded);
}

ValueRange value_range_float32(const std::uint32_t* values, std::size_t count) noexcept {
  return GRADWIRE_DISPATCH(value_range)(values, count);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
