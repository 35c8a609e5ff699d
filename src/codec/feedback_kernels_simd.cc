#include <limits>

#include "codec/feedback_kernels.h"
#include "core/dtype_traits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/feedback_kernels_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/dtype_lanes-inl.h"
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

template <typename Type>
struct Compensated {
  hn::Vec<typename DTypeLanes<Type>::U> sent;
  hn::Vec<typename DTypeLanes<Type>::D> velocity, sum, residual;
};

template <typename Type, bool kMomentum>
HWY_INLINE Compensated<Type> compensated(const FeedbackRule& rule, const std::byte* values,
                                         const FeedbackState& state, std::size_t i) {
  using L = DTypeLanes<Type>;
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
  using L = DTypeLanes<Type>;
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
  using L = DTypeLanes<Type>;
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
