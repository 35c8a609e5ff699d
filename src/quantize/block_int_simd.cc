#include <algorithm>
#include <array>
#include <type_traits>

#include "core/dtype_traits.h"
#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/levels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/block_int_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/dtype_lanes-inl.h"
#include "core/int_conversions-inl.h"
#include "core/noise_vectors-inl.h"
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors the plain kernels are the best ones.
void block_int_encode(DType dtype, const std::byte* values, std::size_t count, std::uint32_t group,
                      unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                      std::int8_t* integers) {
  block_int_encode_ref(dtype, values, count, group, bits, rounding, scales, integers);
}
bool dequantize(DType dtype, const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                unsigned bits, std::byte* values) {
  return block_int_dequantize_ref(dtype, patterns, count, scale, bits, values);
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

// What block_int_encode() is given; `floats`: the values as float32.
struct Batch {
  DType dtype;
  const std::byte* values;
  const std::uint32_t* floats;
  std::size_t count;
  std::uint32_t group;
  unsigned bits;
  const BlockRounding& rounding;

  // By the plain kernel: the groups in `length` values.
  void encode_plain(std::size_t first, std::size_t length, std::uint16_t* scales,
                    std::int8_t* integers) const {
    BlockRounding moved = rounding;
    moved.index += first;
    block_int_encode_ref(dtype, values + dtype_size(dtype) * first, length, group, bits, moved,
                         scales, integers + first);
  }
};

// find(first, length, scales, inverses): find_scales() of these values.
template <class FindScales>
HWY_INLINE void encode_batch(const Batch& batch, FindScales find, std::uint16_t* scales,
                             std::int8_t* integers) {
  const std::size_t n = 2 * hn::Lanes(D32());
  const std::size_t group = batch.group;
  const std::size_t count = batch.count;
  const BlockRounding& rounding = batch.rounding;
  const std::uint64_t pair = rounding.index / 2;
  // Values go by twos and pairs count in 32 bits.
  const bool fits =
      group % n == 0 && rounding.index % 2 == 0 && (pair & 0xFFFFFFFFu) + count <= 0xFFFFFFFFu;
  // A short last group with an odd rest is left to the plain kernel.
  const std::size_t whole = !fits ? 0 : count % n == 0 ? count : count / group * group;
  const V32 iota = hn::Iota(D32(), 0);  // once: it goes through memory
  std::array<float, kMostBlockGroup / 8> inverses;
  const std::size_t run = inverses.size() * group;
  for (std::size_t start = 0; start < whole; start += run) {
    const std::size_t end = std::min(start + run, whole);
    find(start, end - start, scales, inverses.data());
    const float* inverse = inverses.data();
    for (std::size_t first = start; first < end; first += group, ++inverse, ++scales) {
      const std::size_t length = std::min(group, end - first);
      const Quantizer quantizer = {hn::Set(DF32(), *inverse * 65536.0f),
                                   static_cast<std::int8_t>(most_level(batch.bits))};
      if (*inverse == 0) {
        std::fill_n(integers + first, length, std::int8_t{0});
      } else if (*inverse > kMostInverse) {
        batch.encode_plain(first, length, scales, integers);
      } else if (rounding.stochastic) {
        quantize(batch.floats + first, length, quantizer,
                 NoiseVectors(rounding.key, pair + first / 2, iota), integers + first);
      } else {
        quantize(batch.floats + first, length, quantizer, NoNoise(), integers + first);
      }
    }
  }
  if (whole < count) batch.encode_plain(whole, count - whole, scales, integers);
}

// ---- the other types ----

template <typename Type>
HWY_INLINE void to_float32(const std::byte* values, std::size_t count, std::uint32_t* to) {
  using L = DTypeLanes<Type>;
  const std::size_t n = hn::Lanes(typename L::D());
  std::size_t i = 0;
  for (; i + n <= count; i += n) {
    const auto x = L::widen(L::load_raw(values + sizeof(typename Type::Bits) * i));
    if constexpr (std::is_same_v<Type, Float64>) {
      const hn::Rebind<float, typename L::D> narrow;
      hn::StoreU(hn::BitCast(hn::RebindToUnsigned<decltype(narrow)>(), hn::DemoteTo(narrow, x)),
                 hn::RebindToUnsigned<decltype(narrow)>(), to + i);
    } else {
      hn::StoreU(hn::BitCast(D32(), x), D32(), to + i);
    }
  }
  for (; i < count; ++i) {
    const auto x = Type::widen(load<typename Type::Bits>(values, i));
    to[i] = float32_bits(static_cast<float>(x));
  }
}

#if HWY_HAVE_FLOAT64
// As find_scales() of the float64 themselves.
HWY_INLINE void find_scales_float64(const std::byte* values, std::size_t count, std::size_t group,
                                    std::int32_t most, std::uint16_t* scales, float* inverses) {
  const hn::ScalableTag<std::int64_t> d;
  const auto magnitude = hn::Set(d, static_cast<std::int64_t>(kFloat64Magnitude));
  for (std::size_t first = 0; first < count; first += group) {
    const std::size_t end = std::min(first + group, count);
    auto largest = hn::Zero(d);
    for (std::size_t i = first; i < end; i += hn::Lanes(d)) {
      largest = hn::Max(largest, hn::And(load_any(d, values + sizeof(double) * i), magnitude));
    }
    const auto bits = static_cast<std::uint64_t>(hn::GetLane(hn::MaxOfLanes(d, largest)));
    const std::uint16_t scale = block_scale_of(bits);
    const bool none = scale == kZeroGroupScale || scale == kRawGroupScale;
    *scales++ = scale;
    *inverses++ =
        none ? 0 : static_cast<float>(most) / float32_from_bits(float32_bits_from_bfloat16(scale));
  }
}
#endif

template <typename Type>
void encode_as(Batch batch, std::uint16_t* scales, std::int8_t* integers) {
  const std::size_t group = batch.group;
  const std::int32_t most = most_level(batch.bits);
  std::array<std::uint32_t, kMostBlockGroup> floats;
  if constexpr (std::is_same_v<Type, Float32>) {
    batch.floats = reinterpret_cast<const std::uint32_t*>(batch.values);
  } else {
    to_float32<Type>(batch.values, batch.count, floats.data());
    batch.floats = floats.data();
  }
  const auto find = [=](std::size_t first, std::size_t length, std::uint16_t* to,
                        float* inverses) HWY_ATTR {
    if constexpr (std::is_same_v<Type, Float64>) {
      find_scales_float64(batch.values + sizeof(double) * first, length, group, most, to, inverses);
    } else {
      find_scales(batch.floats + first, length, group, most, to, inverses);
    }
  };
  encode_batch(batch, find, scales, integers);
}

void block_int_encode(DType dtype, const std::byte* values, std::size_t count, std::uint32_t group,
                      unsigned bits, const BlockRounding& rounding, std::uint16_t* scales,
                      std::int8_t* integers) {
  const Batch batch = {dtype, values, nullptr, count, group, bits, rounding};
  switch (dtype) {
    case DType::kFloat64:
#if HWY_HAVE_FLOAT64
      return encode_as<Float64>(batch, scales, integers);
#else
      return batch.encode_plain(0, count, scales, integers);
#endif
    case DType::kFloat16:
      return encode_as<Float16>(batch, scales, integers);
    case DType::kBFloat16:
      return encode_as<BFloat16>(batch, scales, integers);
    default:
      return encode_as<Float32>(batch, scales, integers);
  }
}

// Finite values, one vector; never to Inf.
template <typename Type>
HWY_INLINE void store_as(hn::Vec<DF32> x, std::byte* values) {
  const DF32 df;
  if constexpr (std::is_same_v<Type, Float64>) {
    const hn::ScalableTag<double> wide;
    const hn::Half<DF32> half;
    store_any(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)), values);
    store_any(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)),
              values + sizeof(double) * hn::Lanes(wide));
  } else {
    using L = DTypeLanes<Type>;
    if constexpr (!std::is_same_v<Type, Float32>) {
      const auto most = hn::Set(df, Type::widen(Type::kInf - 1));
      x = hn::Min(hn::Max(x, hn::Neg(most)), most);
    }
    L::store_raw(L::narrow(x), values);
  }
}

template <typename Type>
bool dequantize_as(DType dtype, const std::uint8_t* patterns, std::size_t count,
                   std::uint16_t scale, unsigned bits, std::byte* values) {
  const D32 d;
  const DI32 di;
  const DF32 df;
  const hn::Rebind<std::uint8_t, D32> d8;
  constexpr std::size_t kSize = sizeof(typename Type::Bits);
  const std::size_t n = hn::Lanes(d);
  const std::size_t whole = count / n * n;
  const std::int32_t most = most_level(bits);
  const auto sign = hn::Set(di, most + 1);
  const auto unit =
      hn::Set(df, float32_from_bits(float32_bits_from_bfloat16(scale)) / static_cast<float>(most));
  auto forbidden = hn::Zero(di);
  for (std::size_t i = 0; i < whole; i += n) {
    const auto pattern = hn::BitCast(di, hn::PromoteTo(d, hn::LoadU(d8, patterns + i)));
    forbidden = hn::Or(forbidden, hn::VecFromMask(di, hn::Eq(pattern, sign)));
    const auto q = hn::Sub(hn::Xor(pattern, sign), sign);
    store_as<Type>(hn::Mul(hn::ConvertTo(df, q), unit), values + kSize * i);
  }
  return hn::AllTrue(di, hn::Eq(forbidden, hn::Zero(di))) &&
         (whole == count || block_int_dequantize_ref(dtype, patterns + whole, count - whole, scale,
                                                     bits, values + kSize * whole));
}

bool dequantize(DType dtype, const std::uint8_t* patterns, std::size_t count, std::uint16_t scale,
                unsigned bits, std::byte* values) {
  switch (dtype) {
    case DType::kFloat64:
#if HWY_HAVE_FLOAT64
      return dequantize_as<Float64>(dtype, patterns, count, scale, bits, values);
#else
      return block_int_dequantize_ref(dtype, patterns, count, scale, bits, values);
#endif
    case DType::kFloat16:
      return dequantize_as<Float16>(dtype, patterns, count, scale, bits, values);
    case DType::kBFloat16:
      return dequantize_as<BFloat16>(dtype, patterns, count, scale, bits, values);
    default:
      return dequantize_as<Float32>(dtype, patterns, count, scale, bits, values);
  }
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

void block_int_encode_simd(DType dtype, const std::byte* values, std::size_t count,
                           std::uint32_t group, unsigned bits, const BlockRounding& rounding,
                           std::uint16_t* scales, std::int8_t* integers) noexcept {
  GRADWIRE_DISPATCH(block_int_encode)
  (dtype, values, count, group, bits, rounding, scales, integers);
}

bool block_int_dequantize_simd(DType dtype, const std::uint8_t* patterns, std::size_t count,
                               std::uint16_t scale, unsigned bits, std::byte* values) noexcept {
  return GRADWIRE_DISPATCH(dequantize)(dtype, patterns, count, scale, bits, values);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
