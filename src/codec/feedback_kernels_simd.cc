#include <limits>

#include "codec/feedback_kernels.h"
#include "core/dtype_traits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/feedback_kernels_simd.cc"
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
void compensate_kernel(DType dtype, const FeedbackRule& rule, const std::byte* values,
                       const FeedbackState& state, std::byte* sent, std::uint64_t count) {
  compensate_ref(dtype, rule, values, state, sent, count);
}
void keep_rest_kernel(DType dtype, const FeedbackRule& rule, const std::byte* values,
                      const std::byte* decoded, const FeedbackState& state, std::uint64_t count) {
  keep_rest_ref(dtype, rule, values, decoded, state, count);
}

#else

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
struct Full {
  using D = hn::ScalableTag<typename Type::Sum>;
  using U = hn::RebindToUnsigned<D>;
  static constexpr typename Type::Bits kOverflow = Type::kInf;

  static HWY_INLINE hn::Vec<U> load_raw(const std::byte* from) { return load_any(U(), from); }
  static HWY_INLINE hn::Vec<D> widen(hn::Vec<U> raw) { return hn::BitCast(D(), raw); }
  static HWY_INLINE hn::Vec<U> narrow(hn::Vec<D> sum) { return hn::BitCast(U(), sum); }
  static HWY_INLINE void store_raw(hn::Vec<U> raw, std::byte* to) { store_any(U(), raw, to); }
};

struct Half {
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
struct Lanes : Full<Type> {};

template <>
struct Lanes<BFloat16> : Half {
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
struct Lanes<Float16> : Half {
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

template <typename Type>
struct Compensated {
  hn::Vec<typename Lanes<Type>::U> sent;
  hn::Vec<typename Lanes<Type>::D> velocity, sum, residual;
};

template <typename Type, bool kMomentum>
HWY_INLINE Compensated<Type> compensated(const FeedbackRule& rule, const std::byte* values,
                                         const FeedbackState& state, std::size_t i) {
  using L = Lanes<Type>;
  using Sum = typename Type::Sum;
  const typename L::D d;
  const typename L::U u;
  const auto raw = L::load_raw(values + i * sizeof(typename Type::Bits));
  const auto x = L::widen(raw);
  const auto zero = hn::Zero(d);
  const auto e = load_any(d, state.residuals + i * sizeof(Sum));
  auto v = x;
  auto use = hn::Ne(e, zero);
  if constexpr (kMomentum) {
    const auto carried = hn::Mul(hn::Set(d, static_cast<Sum>(rule.momentum)),
                                 load_any(d, state.velocities + i * sizeof(Sum)));
    v = hn::Add(carried, x);
    use = hn::Or(use, hn::Ne(carried, zero));
  }
  const auto h = hn::Add(v, e);
  // Comparisons with a NaN are false.
  const auto inf = hn::Set(d, std::numeric_limits<Sum>::infinity());
  const auto overflow = hn::BitCast(d, hn::Set(u, L::kOverflow));
  use = hn::And(use, hn::And(hn::Lt(hn::Abs(x), inf), hn::Lt(hn::Abs(h), overflow)));
  return {hn::IfThenElse(hn::RebindMask(u, use), L::narrow(h), raw), hn::IfThenElse(use, v, x),
          hn::IfThenElse(use, h, x), hn::IfThenElseZero(use, e)};
}

// NaN and infinities alone have a difference with themselves that is not 0.
template <class D>
HWY_INLINE hn::Vec<D> finite_or_zero(D d, hn::Vec<D> v) {
  return hn::IfThenElseZero(hn::Eq(hn::Sub(v, v), hn::Zero(d)), v);
}

// Whole vectors only; both return how many values they have done.
template <typename Type, bool kMomentum>
std::size_t compensate_vectors(const FeedbackRule& rule, const std::byte* values,
                               const FeedbackState& state, std::byte* sent, std::size_t count) {
  using L = Lanes<Type>;
  const std::size_t lanes = hn::Lanes(typename L::D());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto had = compensated<Type, kMomentum>(rule, values, state, i);
    L::store_raw(had.sent, sent + i * sizeof(typename Type::Bits));
  }
  return i;
}

template <typename Type, bool kMomentum, bool kAverage>
std::size_t keep_vectors(const FeedbackRule& rule, const std::byte* values,
                         const std::byte* decoded, const FeedbackState& state, std::size_t count) {
  using L = Lanes<Type>;
  using Sum = typename Type::Sum;
  const typename L::D d;
  const auto beta = hn::Set(d, static_cast<Sum>(rule.beta));
  const auto other = hn::Set(d, 1 - static_cast<Sum>(rule.beta));
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto had = compensated<Type, kMomentum>(rule, values, state, i);
    const auto got = L::widen(L::load_raw(decoded + i * sizeof(typename Type::Bits)));
    auto rest = hn::Sub(had.sum, got);
    if constexpr (kAverage) rest = hn::Add(hn::Mul(other, had.residual), hn::Mul(beta, rest));
    store_any(d, finite_or_zero(d, rest), state.residuals + i * sizeof(Sum));
    if constexpr (kMomentum) {
      // By Eq, which is false for a NaN everywhere; what Ne says differs between targets.
      const auto velocity =
          hn::IfThenElseZero(hn::Eq(got, hn::Zero(d)), finite_or_zero(d, had.velocity));
      store_any(d, velocity, state.velocities + i * sizeof(Sum));
    }
  }
  return i;
}

template <typename Type>
void compensate_as(DType dtype, const FeedbackRule& rule, const std::byte* values,
                   const FeedbackState& state, std::byte* sent, std::size_t count) {
  const std::size_t done = state.velocities != nullptr
                               ? compensate_vectors<Type, true>(rule, values, state, sent, count)
                               : compensate_vectors<Type, false>(rule, values, state, sent, count);
  constexpr std::size_t kBytes = sizeof(typename Type::Bits);
  compensate_ref(dtype, rule, values + done * kBytes,
                 advanced(state, done * sizeof(typename Type::Sum)), sent + done * kBytes,
                 count - done);
}

template <typename Type>
void keep_as(DType dtype, const FeedbackRule& rule, const std::byte* values,
             const std::byte* decoded, const FeedbackState& state, std::size_t count) {
  const bool average = rule.beta != 1;
  std::size_t done = 0;
  if (state.velocities != nullptr) {
    done = average ? keep_vectors<Type, true, true>(rule, values, decoded, state, count)
                   : keep_vectors<Type, true, false>(rule, values, decoded, state, count);
  } else {
    done = average ? keep_vectors<Type, false, true>(rule, values, decoded, state, count)
                   : keep_vectors<Type, false, false>(rule, values, decoded, state, count);
  }
  constexpr std::size_t kBytes = sizeof(typename Type::Bits);
  keep_rest_ref(dtype, rule, values + done * kBytes, decoded + done * kBytes,
                advanced(state, done * sizeof(typename Type::Sum)), count - done);
}

void compensate_kernel(DType dtype, const FeedbackRule& rule, const std::byte* values,
                       const FeedbackState& state, std::byte* sent, std::uint64_t count) {
  const auto n = static_cast<std::size_t>(count);
  switch (dtype) {
    case DType::kFloat64:
#if HWY_HAVE_FLOAT64
      return compensate_as<Float64>(dtype, rule, values, state, sent, n);
#else
      return compensate_ref(dtype, rule, values, state, sent, n);
#endif
    case DType::kFloat16:
      return compensate_as<Float16>(dtype, rule, values, state, sent, n);
    case DType::kBFloat16:
      return compensate_as<BFloat16>(dtype, rule, values, state, sent, n);
    default:
      return compensate_as<Float32>(dtype, rule, values, state, sent, n);
  }
}

void keep_rest_kernel(DType dtype, const FeedbackRule& rule, const std::byte* values,
                      const std::byte* decoded, const FeedbackState& state, std::uint64_t count) {
  const auto n = static_cast<std::size_t>(count);
  switch (dtype) {
    case DType::kFloat64:
#if HWY_HAVE_FLOAT64
      return keep_as<Float64>(dtype, rule, values, decoded, state, n);
#else
      return keep_rest_ref(dtype, rule, values, decoded, state, n);
#endif
    case DType::kFloat16:
      return keep_as<Float16>(dtype, rule, values, decoded, state, n);
    case DType::kBFloat16:
      return keep_as<BFloat16>(dtype, rule, values, decoded, state, n);
    default:
      return keep_as<Float32>(dtype, rule, values, decoded, state, n);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {

HWY_EXPORT(compensate_kernel);
HWY_EXPORT(keep_rest_kernel);

void compensate(DType dtype, const FeedbackRule& rule, const std::byte* values,
                const FeedbackState& state, std::byte* sent, std::uint64_t count) noexcept {
  GRADWIRE_DISPATCH(compensate_kernel)(dtype, rule, values, state, sent, count);
}

void keep_rest(DType dtype, const FeedbackRule& rule, const std::byte* values,
               const std::byte* decoded, const FeedbackState& state, std::uint64_t count) noexcept {
  GRADWIRE_DISPATCH(keep_rest_kernel)(dtype, rule, values, decoded, state, count);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
