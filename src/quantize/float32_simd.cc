#include "quantize/float32_simd.h"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/float32_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/int_conversions-inl.h"
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors the plain kernels are the best ones.
GroupScale group_scale(const std::uint32_t* values, std::uint32_t count, std::uint64_t factor) {
  return group_scale_ref<Float32Format>(values, count, factor);
}
std::uint32_t quantize_step(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                            std::uint32_t q_max, std::uint8_t* tokens, std::uint16_t* lane_bits) {
  return quantize_step_ref(values, count, k, q_max, tokens, lane_bits);
}
SquareSum square_sum(const std::uint32_t* values, std::uint32_t count, std::int32_t top) {
  return square_sum_ref<Float32Format>(values, count, top);
}
void group_scales(const std::uint32_t* values, std::uint32_t group, std::uint32_t groups,
                  std::uint64_t factor, GroupScale* scales) {
  for (std::uint32_t g = 0; g < groups; ++g) {
    scales[g] = group_scale(values + std::size_t{g} * group, group, factor);
  }
}
bool dequantize_step(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                     std::uint32_t count, std::int32_t k, std::uint32_t* values) {
  return dequantize_step_ref(tokens, lane_bits, count, k, values);
}
bool any_escape(const std::uint8_t* tokens, std::uint32_t count) {
  std::uint8_t largest = 0;
  for (std::uint32_t i = 0; i < count; ++i) largest = tokens[i] > largest ? tokens[i] : largest;
  return largest == kStepEscape;
}
std::uint32_t collect(const std::byte* values, std::uint64_t count) {
  return collect_mantissas<Float32Format>(values, count);
}
std::uint32_t quantize_exponent(const std::uint32_t* values, std::uint32_t count, std::int32_t top,
                                MantissaSplit split, TokenRange range, std::uint8_t* tokens,
                                std::uint16_t* lane_bits, std::byte* plane) {
  return quantize_exponent_ref<Float32Format>(values, count, top, split, range, tokens, lane_bits,
                                              plane);
}
void round_mantissa(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                    std::uint32_t* rounded) {
  std::memcpy(rounded, values, count * sizeof(std::uint32_t));
  round_mantissa_ref<Float32Format>(rounded, count, mantissa);
}
bool dequantize_exponent(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                         const std::byte* plane, std::uint32_t count, std::int32_t top,
                         MantissaSplit split, std::uint32_t* values) {
  return dequantize_exponent_ref<Float32Format>(tokens, lane_bits, plane, count, top, split,
                                                values);
}

#else

using D32 = hn::ScalableTag<std::uint32_t>;
using DI32 = hn::RebindToSigned<D32>;
using DF32 = hn::RebindToFloat<D32>;
using D16 = hn::Rebind<std::uint16_t, D32>;
using D8 = hn::Rebind<std::uint8_t, D32>;
using V32 = hn::Vec<D32>;

constexpr std::uint32_t kSign = Float32Format::kSign;
constexpr std::uint32_t kMagnitude = Float32Format::kMagnitude;
// Values whose squares one chunk of group_scale adds in 32 bits: 256 x 2^22 < 2^31.
constexpr std::uint32_t kChunk = 256;
// As in the plain kernel: from here on the product below is exact where it is 1 or more.
constexpr std::int32_t kFastTop = 11;
constexpr float kMagic = 0x1.8p9f;
constexpr float kUnit = 0x1p-14f;

// ---- scale ----

// Sum of s^2 over a multiple of the vector length of at most kChunk values. The sign of s, which is
// cut off towards 0, does not matter; |s| is below 2^11 and fits 16 bits.
HWY_INLINE std::uint32_t chunk_squares(const std::uint32_t* values, std::uint32_t count,
                                       float scale) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const hn::Repartition<std::int16_t, DI32> d16;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  const auto factor = hn::Set(df, scale);
  const auto s_of = [&](std::uint32_t i) HWY_ATTR {
    return truncate_in_range(hn::Mul(hn::BitCast(df, hn::LoadU(d, values + i)), factor));
  };
  auto sum0 = hn::Zero(di);
  auto sum1 = hn::Zero(di);
  std::uint32_t i = 0;
  for (; i + 2 * n <= count; i += 2 * n) {
    const auto s = hn::ReorderDemote2To(d16, s_of(i), s_of(i + n));
    sum0 = hn::ReorderWidenMulAccumulate(di, s, s, sum0, sum1);
  }
  if (i < count) {
    const auto s = hn::ReorderDemote2To(d16, s_of(i), hn::Zero(di));
    sum0 = hn::ReorderWidenMulAccumulate(di, s, s, sum0, sum1);
  }
  return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(di, hn::Add(sum0, sum1))));
}

HWY_INLINE std::uint32_t largest_magnitude(const std::uint32_t* values, std::uint32_t count) {
  const D32 d;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  const auto magnitude = hn::Set(d, kMagnitude);
  const auto magnitude_of = [&](std::uint32_t i)
                                HWY_ATTR { return hn::And(hn::LoadU(d, values + i), magnitude); };
  auto largest0 = hn::Zero(d);
  auto largest1 = hn::Zero(d);
  std::uint32_t i = 0;
  for (; i + 4 * n <= count; i += 4 * n) {
    largest0 = hn::Max(largest0, hn::Max(magnitude_of(i), magnitude_of(i + n)));
    largest1 = hn::Max(largest1, hn::Max(magnitude_of(i + 2 * n), magnitude_of(i + 3 * n)));
  }
  for (; i < count; i += n) largest0 = hn::Max(largest0, magnitude_of(i));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest0, largest1)));
}

// True if the sum of squares may be taken as chunk_squares() does, with the factor that belongs to
// the largest exponent field.
HWY_INLINE bool has_fast_squares(std::int32_t top) {
  return top >= kFastTop && top < Float32Format::kExponentMax;
}

std::uint64_t fast_squares(const std::uint32_t* values, std::uint32_t count, std::int32_t top) {
  const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 137 - top) << 23);
  std::uint64_t sum = 0;
  for (std::uint32_t first = 0; first < count; first += kChunk) {
    sum += chunk_squares(values + first, count - first < kChunk ? count - first : kChunk, scale);
  }
  return sum;
}

std::int32_t largest_field(const std::uint32_t* values, std::uint32_t count) {
  return static_cast<std::int32_t>(largest_magnitude(values, count) >>
                                   Float32Format::kMantissaBits);
}

GroupScale group_scale(const std::uint32_t* values, std::uint32_t count, std::uint64_t factor) {
  const auto n = static_cast<std::uint32_t>(hn::Lanes(D32()));
  if (count % n != 0) return group_scale_ref<Float32Format>(values, count, factor);
  const std::int32_t top = largest_field(values, count);
  if (!has_fast_squares(top)) return group_scale_ref<Float32Format>(values, count, factor);
  return scale_from_squares(fast_squares(values, count, top), count, top - Float32Format::kBias,
                            factor);
}

SquareSum square_sum(const std::uint32_t* values, std::uint32_t count, std::int32_t top) {
  const auto n = static_cast<std::uint32_t>(hn::Lanes(D32()));
  const std::uint32_t whole = has_fast_squares(top) ? count / n * n : 0;
  SquareSum sum = square_sum_ref<Float32Format>(values + whole, count - whole, top);
  sum.add({fast_squares(values, whole, top), whole});
  return sum;
}

// One step for all groups after the other: each ends in a chain of operations across lanes, during
// which the next groups can go on.
void group_scales(const std::uint32_t* values, std::uint32_t group, std::uint32_t groups,
                  std::uint64_t factor, GroupScale* scales) {
  constexpr std::uint32_t kMost = 16;
  std::int32_t tops[kMost];
  std::uint64_t sums[kMost];
  for (std::uint32_t first = 0; first < groups; first += kMost) {
    const std::uint32_t n = groups - first < kMost ? groups - first : kMost;
    const std::uint32_t* const from = values + std::size_t{first} * group;
    for (std::uint32_t g = 0; g < n; ++g) {
      tops[g] = largest_field(from + std::size_t{g} * group, group);
    }
    for (std::uint32_t g = 0; g < n; ++g) {
      const bool fast = has_fast_squares(tops[g]);
      sums[g] = fast ? fast_squares(from + std::size_t{g} * group, group, tops[g]) : 0;
    }
    for (std::uint32_t g = 0; g < n; ++g) {
      scales[first + g] =
          has_fast_squares(tops[g])
              ? scale_from_squares(sums[g], group, tops[g] - Float32Format::kBias, factor)
              : group_scale_ref<Float32Format>(from + std::size_t{g} * group, group, factor);
    }
  }
}

// ---- step form ----

std::uint32_t quantize_step(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                            std::uint32_t q_max, std::uint8_t* tokens, std::uint16_t* lane_bits) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const D16 d16;
  const D8 d8;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  if (k < kStepFastMin || k > kStepFastMax || count % n != 0) {
    return quantize_step_ref(values, count, k, q_max, tokens, lane_bits);
  }
  const auto scale = hn::Set(df, power_of_two(-14 - k));
  const auto magic = hn::Set(df, kMagic);
  const auto limit = hn::Set(
      di,
      static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(static_cast<float>(q_max) * kUnit)));
  const auto magnitude = hn::Set(di, static_cast<std::int32_t>(kMagnitude));
  std::size_t escapes = 0;
  for (std::uint32_t i = 0; i < count; i += n) {
    const auto scaled = hn::Mul(hn::BitCast(df, hn::LoadU(d, values + i)), scale);
    auto pattern = hn::BitCast(di, hn::Sub(hn::Add(scaled, magic), magic));
    const auto escape = hn::Gt(hn::And(pattern, magnitude), limit);
    auto token = hn::BitCast(d, hn::ShiftRight<22>(pattern));
    if (HWY_UNLIKELY(!hn::AllFalse(di, escape))) {
      escapes += hn::CountTrue(di, escape);
      pattern = hn::IfThenZeroElse(escape, pattern);
      token = hn::BitCast(
          d, hn::IfThenElse(escape, hn::Set(di, kStepEscape), hn::ShiftRight<22>(pattern)));
    }
    const V32 bits = hn::BitCast(d, pattern);
    const V32 sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const V32 rest = hn::And(hn::ShiftRight<7>(bits), hn::Set(d, 0x7FFFu));
    hn::StoreU(hn::U8FromU32(hn::And(token, hn::Set(d, 31u))), d8, tokens + i);
    hn::StoreU(hn::TruncateTo(d16, hn::Or(sign, rest)), d16, lane_bits + i);
  }
  return static_cast<std::uint32_t>(escapes);
}

bool dequantize_step(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                     std::uint32_t count, std::int32_t k, std::uint32_t* values) {
  const D32 d;
  const DF32 df;
  const D16 d16;
  const D8 d8;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  if (k < kStepFastMin || k > kStepFastMax || count % n != 0) {
    return dequantize_step_ref(tokens, lane_bits, count, k, values);
  }
  const auto scale = hn::Set(df, power_of_two(14 + k));
  const auto bias = hn::Set(d, 2 * 112u);
  const auto rest = hn::Set(d, 0x7FFFu);
  const auto sign = hn::Set(d, kSign);
  for (std::uint32_t i = 0; i < count; i += n) {
    const auto token = hn::PromoteTo(d, hn::LoadU(d8, tokens + i));
    const auto bits = hn::PromoteTo(d, hn::LoadU(d16, lane_bits + i));
    const auto number =
        hn::Or(hn::ShiftLeft<22>(hn::Add(token, bias)), hn::ShiftLeft<7>(hn::And(bits, rest)));
    const auto pattern = hn::Or(number, hn::And(hn::ShiftLeft<16>(bits), sign));
    const auto kept = hn::IfThenZeroElse(hn::Eq(token, hn::Zero(d)), pattern);
    hn::StoreU(hn::BitCast(d, hn::Mul(hn::BitCast(df, kept), scale)), d, values + i);
  }
  return true;
}

bool any_escape(const std::uint8_t* tokens, std::uint32_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  // Tokens have five bits: the escape is the largest number.
  auto largest = hn::Zero(d);
  std::uint32_t i = 0;
  for (; i + n <= count; i += n) largest = hn::Max(largest, hn::LoadU(d, tokens + i));
  bool any = !hn::AllFalse(d, hn::Eq(largest, hn::Set(d, kStepEscape)));
  for (; i < count; ++i) any |= tokens[i] == kStepEscape;
  return any;
}

// ---- exponent form ----

std::uint32_t collect(const std::byte* bytes, std::uint64_t count) {
  const D32 d;
  const hn::Repartition<std::uint8_t, D32> d8;
  const std::uint64_t n = hn::Lanes(d);
  const std::uint64_t whole = count / n * n;
  const auto infinity = hn::Set(d, Float32Format::kInfinity);
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes);
  auto all = hn::Zero(d);
  for (std::uint64_t i = 0; i < whole; i += n) {
    const auto v = hn::BitCast(d, hn::LoadU(d8, from + i * sizeof(std::uint32_t)));
    const auto infinite = hn::Eq(hn::And(v, infinity), infinity);
    all = hn::Or(all, hn::IfThenZeroElse(infinite, v));
  }
  std::uint32_t lanes[hn::MaxLanes(d)];
  hn::StoreU(all, d, lanes);
  std::uint32_t result = 0;
  for (std::uint64_t i = 0; i < n; ++i) result |= lanes[i];
  return (result & Float32Format::kMantissaMask) |
         collect_mantissas<Float32Format>(bytes + whole * sizeof(std::uint32_t), count - whole);
}

void write_plane(V32 kept, std::uint32_t plane_bytes, std::byte* plane, std::uint32_t i) {
  if (plane_bytes == 2) {
    const D16 d16;
    hn::StoreU(hn::TruncateTo(d16, kept), d16, reinterpret_cast<std::uint16_t*>(plane) + i);
  } else if (plane_bytes == 1) {
    const D8 d8;
    hn::StoreU(hn::U8FromU32(hn::And(kept, hn::Set(D32(), 255u))), d8,
               reinterpret_cast<std::uint8_t*>(plane) + i);
  }
}

std::uint32_t quantize_exponent(const std::uint32_t* values, std::uint32_t count, std::int32_t top,
                                MantissaSplit split, TokenRange range, std::uint8_t* tokens,
                                std::uint16_t* lane_bits, std::byte* plane) {
  const D32 d;
  const D16 d16;
  const D8 d8;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  if (count % n != 0) {
    return quantize_exponent_ref<Float32Format>(values, count, top, split, range, tokens, lane_bits,
                                                plane);
  }
  const auto magnitude_mask = hn::Set(d, kMagnitude);
  const auto first = hn::Set(d, range.first);
  const auto width = hn::Set(d, range.last - range.first);
  const auto base = hn::Set(d, static_cast<std::uint32_t>(top) - range.first);
  const auto sign_bit = hn::Set(d, 0x8000u);
  const auto mask = hn::Set(d, (0xFFFF0000u >> split.lane_bits()) & 0x7FFFu);
  const auto infinity = hn::Set(d, Float32Format::kInfinity);
  const int shift = static_cast<int>(Float32Format::kMantissaBits - split.mantissa);
  std::uint32_t escapes = 0;
  for (std::uint32_t i = 0; i < count; i += n) {
    const auto v = hn::LoadU(d, values + i);
    const auto magnitude = hn::And(v, magnitude_mask);
    const auto offset = hn::Sub(base, hn::ShiftRight<23>(magnitude));
    // Below 0 wraps around: one comparison finds both ends. (Unsigned: by way of the maximum.)
    const auto beyond = hn::Ne(hn::Max(offset, width), width);
    const auto not_finite = hn::Ne(hn::Min(magnitude, infinity), magnitude);
    const auto zero = hn::Eq(magnitude, hn::Zero(d));
    auto token = hn::Add(offset, first);
    auto bits = hn::Or(hn::And(hn::ShiftRight<16>(v), sign_bit),
                       hn::And(hn::ShiftRight<8>(magnitude), mask));
    auto kept = hn::ShiftRightSame(v, shift);
    const auto out = hn::Or(beyond, hn::Or(not_finite, hn::Eq(magnitude, infinity)));
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Or(out, zero)))) {
      const auto escape = hn::AndNot(zero, out);
      escapes += static_cast<std::uint32_t>(hn::CountTrue(d, escape));
      token = hn::IfThenElse(escape, hn::Set(d, std::uint32_t{kExponentEscape}), token);
      token = hn::IfThenElse(zero, hn::Set(d, std::uint32_t{kExponentZero}), token);
      bits = hn::IfThenZeroElse(escape, bits);
      kept = hn::IfThenZeroElse(escape, kept);
    }
    hn::StoreU(hn::U8FromU32(token), d8, tokens + i);
    hn::StoreU(hn::TruncateTo(d16, bits), d16, lane_bits + i);
    write_plane(kept, split.plane_bytes, plane, i);
  }
  return escapes;
}

void round_mantissa(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                    std::uint32_t* rounded) {
  const D32 d;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  if (count % n != 0) {
    std::memcpy(rounded, values, count * sizeof(std::uint32_t));
    return round_mantissa_ref<Float32Format>(rounded, count, mantissa);
  }
  const std::uint32_t drop = Float32Format::kMantissaBits - mantissa;
  const int shift = static_cast<int>(drop);
  const auto keep = hn::Set(d, ~((1u << drop) - 1));
  const auto below_half = hn::Set(d, (1u << (drop - 1)) - 1);
  const auto magnitude_mask = hn::Set(d, kMagnitude);
  const auto hidden = hn::Set(d, Float32Format::kHidden);
  const auto infinity = hn::Set(d, Float32Format::kInfinity);
  for (std::uint32_t i = 0; i < count; i += n) {
    const auto v = hn::LoadU(d, values + i);
    const auto magnitude = hn::And(v, magnitude_mask);
    const auto odd = hn::And(hn::ShiftRightSame(magnitude, shift), hn::Set(d, 1u));
    const auto up = hn::And(hn::Add(magnitude, hn::Add(below_half, odd)), keep);
    auto result = hn::Or(hn::AndNot(magnitude_mask, v), up);
    const auto refused =
        hn::Or(hn::Eq(hn::Max(up, infinity), up), hn::Ne(hn::Max(magnitude, hidden), magnitude));
    if (HWY_UNLIKELY(!hn::AllFalse(d, refused))) {
      result = hn::IfThenElse(refused, hn::Set(d, 0x7FC00000u), result);
      result = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(d)), result);
    }
    hn::StoreU(result, d, rounded + i);
  }
}

V32 read_plane(const std::byte* plane, std::uint32_t plane_bytes, std::uint32_t i) {
  const D32 d;
  if (plane_bytes == 2) {
    const D16 d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(plane) + i));
  }
  const D8 d8;
  return hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(plane) + i));
}

bool dequantize_exponent(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                         const std::byte* plane, std::uint32_t count, std::int32_t top,
                         MantissaSplit split, std::uint32_t* values) {
  const D32 d;
  const D16 d16;
  const D8 d8;
  const auto n = static_cast<std::uint32_t>(hn::Lanes(d));
  if (count % n != 0 || top < static_cast<std::int32_t>(kExponentTokenMax) ||
      top >= Float32Format::kExponentMax) {
    return dequantize_exponent_ref<Float32Format>(tokens, lane_bits, plane, count, top, split,
                                                  values);
  }
  const auto t = hn::Set(d, static_cast<std::uint32_t>(top));
  const auto rest = hn::Set(d, 0x7FFFu);
  const auto sign_bit = hn::Set(d, kSign);
  const auto zero_token = hn::Set(d, std::uint32_t{kExponentZero});
  const int shift = static_cast<int>(Float32Format::kMantissaBits - split.mantissa);
  for (std::uint32_t i = 0; i < count; i += n) {
    const auto token = hn::PromoteTo(d, hn::LoadU(d8, tokens + i));
    const auto bits = hn::PromoteTo(d, hn::LoadU(d16, lane_bits + i));
    auto number =
        hn::Or(hn::ShiftLeft<23>(hn::Sub(t, token)), hn::ShiftLeft<8>(hn::And(bits, rest)));
    if (split.plane_bytes > 0) {
      number = hn::Or(number, hn::ShiftLeftSame(read_plane(plane, split.plane_bytes, i), shift));
    }
    number = hn::IfThenZeroElse(hn::Eq(token, zero_token), number);
    hn::StoreU(hn::Or(number, hn::And(hn::ShiftLeft<16>(bits), sign_bit)), d, values + i);
  }
  return true;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {

HWY_EXPORT(group_scale);
HWY_EXPORT(group_scales);
HWY_EXPORT(square_sum);
HWY_EXPORT(quantize_step);
HWY_EXPORT(dequantize_step);
HWY_EXPORT(any_escape);
HWY_EXPORT(collect);
HWY_EXPORT(quantize_exponent);
HWY_EXPORT(round_mantissa);
HWY_EXPORT(dequantize_exponent);

GroupScale group_scale_simd(const std::uint32_t* values, std::uint32_t count,
                            std::uint64_t factor) noexcept {
  return GRADWIRE_DISPATCH(group_scale)(values, count, factor);
}

void group_scales_simd(const std::uint32_t* values, std::uint32_t group, std::uint32_t groups,
                       std::uint64_t factor, GroupScale* scales) noexcept {
  GRADWIRE_DISPATCH(group_scales)(values, group, groups, factor, scales);
}

SquareSum square_sum_simd(const std::uint32_t* values, std::uint32_t count,
                          std::int32_t top) noexcept {
  return GRADWIRE_DISPATCH(square_sum)(values, count, top);
}

std::uint32_t quantize_step_simd(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                                 std::uint32_t q_max, std::uint8_t* tokens,
                                 std::uint16_t* lane_bits) noexcept {
  return GRADWIRE_DISPATCH(quantize_step)(values, count, k, q_max, tokens, lane_bits);
}

bool dequantize_step_simd(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                          std::uint32_t count, std::int32_t k, std::uint32_t* values) noexcept {
  return GRADWIRE_DISPATCH(dequantize_step)(tokens, lane_bits, count, k, values);
}

bool any_escape_simd(const std::uint8_t* tokens, std::uint32_t count) noexcept {
  return GRADWIRE_DISPATCH(any_escape)(tokens, count);
}

std::uint32_t collect_mantissas_simd(const std::byte* values, std::uint64_t count) noexcept {
  return GRADWIRE_DISPATCH(collect)(values, count);
}

std::uint32_t quantize_exponent_simd(const std::uint32_t* values, std::uint32_t count,
                                     std::int32_t top, MantissaSplit split, TokenRange range,
                                     std::uint8_t* tokens, std::uint16_t* lane_bits,
                                     std::byte* plane) noexcept {
  return GRADWIRE_DISPATCH(quantize_exponent)(values, count, top, split, range, tokens, lane_bits,
                                              plane);
}

void round_mantissa_simd(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                         std::uint32_t* rounded) noexcept {
  GRADWIRE_DISPATCH(round_mantissa)(values, count, mantissa, rounded);
}

bool dequantize_exponent_simd(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                              const std::byte* plane, std::uint32_t count, std::int32_t top,
                              MantissaSplit split, std::uint32_t* values) noexcept {
  return GRADWIRE_DISPATCH(dequantize_exponent)(tokens, lane_bits, plane, count, top, split,
                                                values);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
