#include <algorithm>
#include <array>

#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/levels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/block_int_simd.cc"
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
using DI8 = hn::Rebind<std::int8_t, DI32>;
using V32 = hn::Vec<D32>;
using VI32 = hn::Vec<DI32>;

constexpr std::size_t kMostVectorGroups = 16;  // lanes of the longest vectors here

// ---- scales ----

// The largest magnitude of a group in each lane: of the values that have this place among n.
HWY_INLINE V32 lane_magnitudes(const std::uint32_t* values, std::size_t count) {
  const D32 d;
  const std::size_t n = hn::Lanes(d);
  const auto magnitude = hn::Set(d, kFloat32Magnitude);
  auto a = hn::And(hn::LoadU(d, values), magnitude);
  auto b = hn::And(hn::LoadU(d, values + n), magnitude);
  for (std::size_t i = 2 * n; i < count; i += 2 * n) {
    a = hn::Max(a, hn::And(hn::LoadU(d, values + i), magnitude));
    b = hn::Max(b, hn::And(hn::LoadU(d, values + i + n), magnitude));
  }
  return hn::Max(a, b);
}

// Reduces four vectors at once: in each block of four lanes the largest of that block of a, b, c,
// d. First the halves of blocks (a0 a2 | b0 b2 | a1 a3 | b1 b3), then the rest.
HWY_INLINE V32 max_in_blocks(V32 a, V32 b, V32 c, V32 e) {
  const D32 d;
  const hn::Repartition<std::uint64_t, D32> pairs;
  const auto of_two = [&](V32 x, V32 y) HWY_ATTR {
    return hn::Max(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y));
  };
  const auto ab = hn::BitCast(pairs, of_two(a, b));
  const auto ce = hn::BitCast(pairs, of_two(c, e));
  return hn::Max(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)));
}

// Lane g: the largest magnitude of group g of as many groups as a vector has lanes.
HWY_INLINE V32 group_magnitudes(const std::uint32_t* values, std::size_t group) {
  const auto four = [&](std::size_t g) HWY_ATTR {
    const std::uint32_t* const at = values + g * group;
    return max_in_blocks(lane_magnitudes(at, group), lane_magnitudes(at + group, group),
                         lane_magnitudes(at + 2 * group, group),
                         lane_magnitudes(at + 3 * group, group));
  };
#if HWY_MAX_BYTES == 64
  const D32 d;
  // Blocks 0 | 2, 1 | 3 of the groups 0 to 3 and 8 to 11, of 4 to 7 and 12 to 15; then all.
  const auto halves = [&](V32 x, V32 y) HWY_ATTR {
    return hn::Max(hn::ConcatLowerLower(d, y, x), hn::ConcatUpperUpper(d, y, x));
  };
  const V32 even = halves(four(0), four(8));
  const V32 odd = halves(four(4), four(12));
  return hn::Max(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even),
                 hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)));
#elif HWY_MAX_BYTES == 32
  const D32 d;
  const V32 low = four(0);
  const V32 high = four(4);
  return hn::Max(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
#else
  return four(0);
#endif
}

// Scales of groups, and m / scale; 0 where there are no integers.
HWY_INLINE void store_scales(V32 magnitudes, std::int32_t most, std::uint16_t* scales,
                             float* inverses) {
  const D32 d;
  const DF32 df;
  const hn::Rebind<std::uint16_t, D32> d16;
  const auto scale = hn::ShiftRight<16>(hn::Add(magnitudes, hn::Set(d, 0xFFFFu)));  // up
  // At most 8000: comparisons with sign are right.
  const DI32 di;
  const auto signed_scale = hn::BitCast(di, scale);
  const auto least = hn::Set(di, static_cast<std::int32_t>(kLeastBlockScale));
  const auto infinite = hn::Set(di, static_cast<std::int32_t>(kInfScale) - 1);
  const auto zero = hn::Eq(magnitudes, hn::Zero(d));
  const auto refused =
      hn::RebindMask(d, hn::Or(hn::Gt(least, signed_scale), hn::Gt(signed_scale, infinite)));
  auto result = hn::IfThenElse(refused, hn::Set(d, std::uint32_t{kRawGroupScale}), scale);
  result = hn::IfThenElse(zero, hn::Set(d, std::uint32_t{kZeroGroupScale}), result);
  const auto inverse =
      hn::Div(hn::Set(df, static_cast<float>(most)), hn::BitCast(df, hn::ShiftLeft<16>(scale)));
  const auto none = hn::RebindMask(df, hn::Or(refused, zero));
  hn::StoreU(hn::TruncateTo(d16, result), d16, scales);
  hn::StoreU(hn::IfThenZeroElse(none, inverse), df, inverses);
}

HWY_INLINE void group_scale(const std::uint32_t* values, std::size_t count, std::int32_t most,
                            std::uint16_t* scale, float* inverse) {
  std::uint16_t scales[kMostVectorGroups];
  float inverses[kMostVectorGroups];
  store_scales(hn::MaxOfLanes(D32(), lane_magnitudes(values, count)), most, scales, inverses);
  *scale = scales[0];
  *inverse = inverses[0];
}

// ---- integers ----

// Above this the product of inverse and 2^16 may be infinite.
constexpr float kMostInverse = 0x1p100f;

struct Quantizer {
  hn::Vec<DF32> factor;  // 2^16 m / s
  std::int8_t most;

  // f = t 2^16 to the nearest integer, |f| < 2^23, plus the addend, floor of that over 2^16. The
  // factor may hold the 2^16: it changes the rounding of the product only where that is subnormal
  // without it, and f is 0 in both ways there.
  HWY_INLINE VI32 operator()(const std::uint32_t* values, VI32 addend) const {
    const auto f = nearest_in_range(hn::Mul(hn::BitCast(DF32(), hn::LoadU(D32(), values)), factor));
    return hn::ShiftRight<16>(hn::Add(f, addend));
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> q, std::int8_t* integers) const {
    const auto clamped =
        hn::Max(hn::Min(q, hn::Set(d, most)), hn::Set(d, static_cast<std::int8_t>(-most)));
    hn::StoreU(clamped, d, integers);
  }
};

// 65536 times one half for all: rounding to nearest.
struct NoNoise {
  HWY_INLINE void next(V32* first, V32* second) { *first = *second = hn::Set(D32(), 32768u); }
};

// `count` is a multiple of two vectors.
template <class Addends>
HWY_INLINE void quantize(const std::uint32_t* values, std::size_t count, const Quantizer& quantizer,
                         Addends addends, std::int8_t* integers) {
  const hn::ScalableTag<std::int8_t> bytes;
  const std::size_t n = hn::Lanes(D32());
  const auto two = [&](std::size_t i, VI32* a, VI32* b) HWY_ATTR {
    V32 first, second;
    addends.next(&first, &second);
    *a = quantizer(values + i, hn::BitCast(DI32(), first));
    *b = quantizer(values + i + n, hn::BitCast(DI32(), second));
  };
  std::size_t i = 0;
  VI32 a, b, c, d;
  for (; i + 4 * n <= count; i += 4 * n) {
    two(i, &a, &b);
    two(i + 2 * n, &c, &d);
    quantizer.store(bytes, narrow_to_bytes(a, b, c, d), integers + i);
  }
  if (i < count) {
    two(i, &a, &b);
    quantizer.store(DI8(), hn::DemoteTo(DI8(), a), integers + i);
    quantizer.store(DI8(), hn::DemoteTo(DI8(), b), integers + i + n);
  }
}

// Scales and inverses of the groups in `count` values, of which only the last one may be short; as
// many as a vector has lanes at once, so that none waits for its own.
HWY_INLINE void find_scales(const std::uint32_t* values, std::size_t count, std::size_t group,
                            std::int32_t most, std::uint16_t* scales, float* inverses) {
  const std::size_t n = hn::Lanes(D32());
  while (count >= n * group) {
    store_scales(group_magnitudes(values, group), most, scales, inverses);
    values += n * group;
    count -= n * group;
    scales += n;
    inverses += n;
  }
  while (count > 0) {
    const std::size_t length = std::min(group, count);
    group_scale(values, length, most, scales++, inverses++);
    values += length;
    count -= length;
  }
}

void block_int_encode(const std::byte* bytes, std::size_t count, std::uint32_t group, unsigned bits,
                      const BlockRounding& rounding, std::uint16_t* scales, std::int8_t* integers) {
  const std::size_t n = 2 * hn::Lanes(D32());
  const std::uint64_t pair = rounding.index / 2;
  // Values go by twos and pairs count in 32 bits.
  const bool fits =
      group % n == 0 && rounding.index % 2 == 0 && (pair & 0xFFFFFFFFu) + count <= 0xFFFFFFFFu;
  // A short last group with an odd rest is left to the plain kernel.
  const std::size_t whole = !fits ? 0 : count % n == 0 ? count : count / group * group;
  const auto* const values = reinterpret_cast<const std::uint32_t*>(bytes);
  const std::int32_t most = most_level(bits);
  const V32 iota = hn::Iota(D32(), 0);  // once: it goes through memory
  const auto plain = [&](std::size_t first, std::size_t length, std::uint16_t* scale) {
    BlockRounding moved = rounding;
    moved.index += first;
    block_int_encode_ref(bytes + sizeof(float) * first, length, group, bits, moved, scale,
                         integers + first);
  };
  std::array<float, kMostBlockGroup / 8> inverses;
  const std::size_t batch = inverses.size() * group;
  for (std::size_t start = 0; start < whole; start += batch) {
    const std::size_t end = std::min(start + batch, whole);
    find_scales(values + start, end - start, group, most, scales, inverses.data());
    const float* inverse = inverses.data();
    for (std::size_t first = start; first < end; first += group, ++inverse, ++scales) {
      const std::size_t length = std::min<std::size_t>(group, end - first);
      const Quantizer quantizer = {hn::Set(DF32(), *inverse * 65536.0f),
                                   static_cast<std::int8_t>(most)};
      if (*inverse == 0) {
        std::fill_n(integers + first, length, std::int8_t{0});
      } else if (*inverse > kMostInverse) {
        plain(first, length, scales);
      } else if (rounding.stochastic) {
        quantize(values + first, length, quantizer,
                 NoiseVectors(rounding.key, pair + first / 2, iota), integers + first);
      } else {
        quantize(values + first, length, quantizer, NoNoise(), integers + first);
      }
    }
  }
  if (whole < count) plain(whole, count - whole, scales);
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
