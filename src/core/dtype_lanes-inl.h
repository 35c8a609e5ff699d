// Vectors of the four types of values: the twin of core/dtype_traits.h for vector kernels, included
// once per target. Memory needs no alignment.
#if defined(GRADWIRE_CORE_DTYPE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_DTYPE_LANES_INL_H_
#undef GRADWIRE_CORE_DTYPE_LANES_INL_H_
#else
#define GRADWIRE_CORE_DTYPE_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/dtype_traits.h"
#include "core/float_bits.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

template <class D>
HWY_INLINE hn::Vec<D> load_any(D d, const std::byte* from) {
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
}
template <class D>
HWY_INLINE void store_any(D, hn::Vec<D> v, std::byte* to) {
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(to));
}

// Lanes of one type of values, as numbers of the type they are summed in. `raw` are their bits in
// lanes of the wide type. kOverflow is the least magnitude of a sum that rounds to infinity.
template <typename Type>
struct FullLanes {
  using D = hn::ScalableTag<typename Type::Sum>;
  using U = hn::RebindToUnsigned<D>;
  static constexpr typename Type::Bits kOverflow = Type::kInf;

  static HWY_INLINE hn::Vec<U> load_raw(const std::byte* from) { return load_any(U(), from); }
  static HWY_INLINE hn::Vec<D> widen(hn::Vec<U> raw) { return hn::BitCast(D(), raw); }
  static HWY_INLINE hn::Vec<U> narrow(hn::Vec<D> sum) { return hn::BitCast(U(), sum); }
  static HWY_INLINE void store_raw(hn::Vec<U> raw, std::byte* to) { store_any(U(), raw, to); }
};

struct HalfLanes {
  using D = hn::ScalableTag<float>;
  using U = hn::RebindToUnsigned<D>;
  using I = hn::RebindToSigned<D>;
  using Words = hn::Rebind<std::uint16_t, U>;

  static HWY_INLINE hn::Vec<U> load_raw(const std::byte* from) {
    return hn::PromoteTo(U(), load_any(Words(), from));
  }
  static HWY_INLINE void store_raw(hn::Vec<U> raw, std::byte* to) {
    // From signed lanes, which saturates: all are below 2^16.
    store_any(Words(), hn::DemoteTo(Words(), hn::BitCast(I(), raw)), to);
  }
};

// The lanes below take the formulas of core/float_bits.h, which give the reasons.
template <typename Type>
struct DTypeLanes : FullLanes<Type> {};

template <>
struct DTypeLanes<BFloat16> : HalfLanes {
  static constexpr std::uint32_t kOverflow = 0x7F7F8000u;  // half way to 2^128: tie, to even

  static HWY_INLINE hn::Vec<D> widen(hn::Vec<U> raw) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(raw));
  }
  static HWY_INLINE hn::Vec<U> narrow(hn::Vec<D> sum) {
    const U u;
    const auto bits = hn::BitCast(u, sum);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    return hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(u, 0x7FFFu)), odd));
  }
};

template <>
struct DTypeLanes<Float16> : HalfLanes {
  static constexpr std::uint32_t kOverflow = 0x477FF000u;  // half way to 2^16: tie, to even

  static HWY_INLINE hn::Vec<D> widen(hn::Vec<U> raw) {
    const U u;
    const D d;
    const auto magnitude = hn::And(raw, hn::Set(u, 0x7FFFu));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(u, 112u << 23));
    const auto special = hn::Or(shifted, hn::Set(u, kFloat32Inf));
    const auto units = hn::ConvertTo(d, hn::BitCast(I(), magnitude));
    const auto subnormal = hn::BitCast(u, hn::Mul(units, hn::Set(d, 0x1p-24f)));
    const auto large = hn::IfThenElse(less(hn::Set(u, 0x7BFFu), magnitude), special, normal);
    const auto bits = hn::IfThenElse(less(magnitude, hn::Set(u, 0x400u)), subnormal, large);
    const auto sign = hn::ShiftLeft<16>(hn::And(raw, hn::Set(u, 0x8000u)));
    return hn::BitCast(d, hn::Or(sign, bits));
  }
  // Of sums below kOverflow.
  static HWY_INLINE hn::Vec<U> narrow(hn::Vec<D> sum) {
    const U u;
    const D d;
    const auto bits = hn::BitCast(u, sum);
    const auto one = hn::Set(u, 1);
    const auto magnitude = hn::And(bits, hn::Set(u, kFloat32Magnitude));
    const auto last = hn::And(hn::ShiftRight<13>(magnitude), one);
    const auto rounded = hn::Add(hn::Add(magnitude, hn::Set(u, 0xFFFu)), last);
    const auto normal = hn::Sub(hn::ShiftRight<13>(rounded), hn::Set(u, 112u << 10));
    const auto is_subnormal = less(magnitude, hn::Set(u, 0x38800000u));  // below 2^-14
    const auto bounded = hn::IfThenElse(is_subnormal, magnitude, hn::Set(u, 0x38800000u));
    const auto scaled = hn::Mul(hn::BitCast(d, bounded), hn::Set(d, 0x1p24f));
    const auto units = hn::ConvertTo(I(), scaled);
    const auto rest = hn::BitCast(u, hn::Sub(scaled, hn::ConvertTo(d, units)));
    const auto integer = hn::BitCast(u, units);
    const auto odd = hn::And(integer, one);
    const auto up = hn::IfThenElseZero(less(hn::Set(u, 0x3F000000u), hn::Add(rest, odd)), one);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 0x8000u));
    return hn::Or(sign, hn::IfThenElse(is_subnormal, hn::Add(integer, up), normal));
  }

 private:
  // a < b, both below 2^31.
  static HWY_INLINE hn::Mask<U> less(hn::Vec<U> a, hn::Vec<U> b) {
    return hn::RebindMask(U(), hn::Lt(hn::BitCast(I(), a), hn::BitCast(I(), b)));
  }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
