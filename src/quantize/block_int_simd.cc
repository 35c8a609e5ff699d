#include <algorithm>
#include <array>

#include "core/counter_rng.h"
#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/levels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/block_int_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors the plain kernels are the best ones.
void block_int_encode(const std::byte* values, std::size_t count, std::uint32_t group,
                      unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                      std::int8_t* integers) {
  block_int_encode_ref(values, count, group, bits, rounding, scales, integers);
}
bool dequantize(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale, unsigned bits,
                std::byte* values) {
  return block_int_dequantize(patterns, count, scale, bits, values);
}

#else

using D32 = hn::ScalableTag<std::uint32_t>;
using DI32 = hn::RebindToSigned<D32>;
using DF32 = hn::RebindToFloat<D32>;
using D16 = hn::Repartition<std::uint16_t, D32>;
using DI8 = hn::Rebind<std::int8_t, DI32>;
using V32 = hn::Vec<D32>;
using VI32 = hn::Vec<DI32>;

HWY_INLINE std::uint16_t group_scale(const std::uint32_t* values, std::size_t count) {
  const D32 d;
  const auto magnitude = hn::Set(d, kFloat32Magnitude);
  auto largest = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::And(hn::LoadU(d, values + i), magnitude));
  }
  const std::uint32_t most = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (most == 0) return kZeroGroupScale;
  if (most >= kFloat32Inf) return kRawGroupScale;
  const std::uint32_t scale = (most + 0xFFFFu) >> 16;  // up
  return scale >= kInfScale || scale < kLeastBlockScale ? kRawGroupScale
                                                        : static_cast<std::uint16_t>(scale);
}

// m / s; 0 where there are no integers.
HWY_INLINE float inverse_of(std::uint16_t scale, std::int32_t most) {
  if (scale == kZeroGroupScale || scale == kRawGroupScale) return 0;
  return static_cast<float>(most) / float32_from_bits(float32_bits_from_bfloat16(scale));
}

HWY_INLINE V32 mix(V32 x) {
  const D32 d;
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352Du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68Bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// f = t 2^16 to the nearest integer, |f| < 2^23, plus the addend, floor of that over 2^16.
HWY_INLINE VI32 integers_of(const std::uint32_t* values, hn::Vec<DF32> inverse, VI32 addend,
                            VI32 most) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const auto t = hn::Mul(hn::BitCast(df, hn::LoadU(d, values)), inverse);
  const auto f = hn::NearestInt(hn::Mul(t, hn::Set(df, 65536.0f)));
  const auto q = hn::ShiftRight<16>(hn::Add(f, addend));
  return hn::Max(hn::Min(q, most), hn::Sub(hn::Zero(di), most));
}

HWY_INLINE void quantize_nearest(const std::uint32_t* values, std::size_t count, float inverse,
                                 std::int32_t most, std::int8_t* integers) {
  const DI32 di;
  for (std::size_t i = 0; i < count; i += hn::Lanes(di)) {
    const auto q =
        integers_of(values + i, hn::Set(DF32(), inverse), hn::Set(di, 32768), hn::Set(di, most));
    hn::StoreU(hn::DemoteTo(DI8(), q), DI8(), integers + i);
  }
}

// `pair`: of the first two values. One vector of pairs is the noise of two vectors of values.
HWY_INLINE void quantize_stochastic(const std::uint32_t* values, std::size_t count, float inverse,
                                    std::int32_t most, std::uint64_t key, std::uint64_t pair,
                                    V32 iota, std::int8_t* integers) {
  const D32 d;
  const DI32 di;
  const D16 d16;
  const hn::Half<D16> half;
  const std::size_t n = hn::Lanes(d);
  const auto low = hn::Set(d, static_cast<std::uint32_t>(key));
  const auto high =
      hn::Set(d, static_cast<std::uint32_t>(key >> 32) + static_cast<std::uint32_t>(pair >> 32));
  auto counter = hn::Add(iota, hn::Set(d, static_cast<std::uint32_t>(pair)));
  const auto scale = hn::Set(DF32(), inverse);
  const auto limit = hn::Set(di, most);
  for (std::size_t i = 0; i < count; i += 2 * n) {
    const auto noise = hn::BitCast(d16, mix(hn::Add(mix(hn::Xor(counter, low)), high)));
    counter = hn::Add(counter, hn::Set(d, static_cast<std::uint32_t>(n)));
    const auto first = hn::BitCast(di, hn::PromoteTo(d, hn::LowerHalf(half, noise)));
    const auto second = hn::BitCast(di, hn::PromoteTo(d, hn::UpperHalf(half, noise)));
    const auto a = integers_of(values + i, scale, first, limit);
    const auto b = integers_of(values + i + n, scale, second, limit);
    hn::StoreU(hn::DemoteTo(DI8(), a), DI8(), integers + i);
    hn::StoreU(hn::DemoteTo(DI8(), b), DI8(), integers + i + n);
  }
}

void block_int_encode(const std::byte* bytes, std::size_t count, std::uint32_t group, unsigned bits,
                      const BlockRounding& rounding, std::uint16_t* scales, std::int8_t* integers) {
  const std::size_t n = 2 * hn::Lanes(D32());
  const std::uint64_t pair = rounding.index / 2;
  // Values go by twos and pairs count in 32 bits.
  const bool fits =
      group % n == 0 && rounding.index % 2 == 0 && (pair & 0xFFFFFFFFu) + count <= 0xFFFFFFFFu;
  const std::size_t whole = fits ? count / n * n : 0;
  const auto* const values = reinterpret_cast<const std::uint32_t*>(bytes);
  const std::int32_t most = most_level(bits);
  std::size_t first = 0;
  const V32 iota = hn::Iota(D32(), 0);  // once: it goes through memory
  // All scales before all integers, so that no group waits for its own.
  std::array<float, kMostBlockGroup / 8> inverses;
  while (first + std::min<std::size_t>(group, count - first) <= whole && first < count) {
    std::size_t end = first;
    std::size_t known = 0;
    for (; end < count && known < inverses.size(); ++known) {
      const std::size_t length = std::min<std::size_t>(group, count - end);
      if (end + length > whole) break;
      const std::uint16_t scale = group_scale(values + end, length);
      scales[known] = scale;
      inverses[known] = inverse_of(scale, most);
      end += length;
    }
    for (std::size_t g = 0; g < known; ++g, first += group) {
      const std::size_t length = std::min<std::size_t>(group, count - first);
      if (inverses[g] == 0) {
        std::fill_n(integers + first, length, std::int8_t{0});
      } else if (rounding.stochastic) {
        quantize_stochastic(values + first, length, inverses[g], most, rounding.key,
                            pair + first / 2, iota, integers + first);
      } else {
        quantize_nearest(values + first, length, inverses[g], most, integers + first);
      }
    }
    first = end;
    scales += known;
  }
  if (first >= count) return;
  BlockRounding rest = rounding;
  rest.index += first;
  block_int_encode_ref(bytes + sizeof(float) * first, count - first, group, bits, rest, scales,
                       integers + first);
}

bool dequantize(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale, unsigned bits,
                std::byte* bytes) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const hn::Rebind<std::uint8_t, D32> d8;
  const std::size_t n = hn::Lanes(d);
  const std::size_t whole = count / n * n;
  const std::int32_t most = most_level(bits);
  const auto sign = hn::Set(di, most + 1);
  const auto unit =
      hn::Set(df, float32_from_bits(float32_bits_from_bfloat16(scale)) / static_cast<float>(most));
  auto forbidden = hn::Zero(di);
  auto* const values = reinterpret_cast<float*>(bytes);
  for (std::size_t i = 0; i < whole; i += n) {
    const auto pattern = hn::BitCast(di, hn::PromoteTo(d, hn::LoadU(d8, patterns + i)));
    forbidden = hn::Or(forbidden, hn::VecFromMask(di, hn::Eq(pattern, sign)));
    const auto q = hn::Sub(hn::Xor(pattern, sign), sign);
    hn::StoreU(hn::Mul(hn::ConvertTo(df, q), unit), df, values + i);
  }
  return hn::AllTrue(di, hn::Eq(forbidden, hn::Zero(di))) &&
         (whole == count || block_int_dequantize(patterns + whole, count - whole, scale, bits,
                                                 bytes + sizeof(float) * whole));
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(block_int_encode);
HWY_EXPORT(dequantize);

}  // namespace

void block_int_encode_simd(const std::byte* values, std::size_t count, std::uint32_t group,
                           unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                           std::int8_t* integers) noexcept {
  GRADWIRE_DISPATCH(block_int_encode)(values, count, group, bits, rounding, scales, integers);
}

bool block_int_dequantize_simd(const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                               unsigned bits, std::byte* values) noexcept {
  return GRADWIRE_DISPATCH(dequantize)(patterns, count, scale, bits, values);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
