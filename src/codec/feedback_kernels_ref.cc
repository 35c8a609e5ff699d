#include <cstring>

#include "codec/feedback_kernels.h"
#include "core/dtype_traits.h"

namespace gradwire::internal {
namespace {

template <typename Type>
struct Compensated {
  using Sum = typename Type::Sum;
  typename Type::Bits sent;
  Sum velocity, sum, residual;
};

template <typename Type>
Compensated<Type> compensated(const FeedbackRule& rule, const std::byte* values,
                              const FeedbackState& state, std::uint64_t i) noexcept {
  using Sum = typename Type::Sum;
  const auto x = load<typename Type::Bits>(values, i);
  const Sum e = load<Sum>(state.residuals, i);
  const bool has_momentum = state.velocities != nullptr;
  const Sum carried =
      has_momentum ? static_cast<Sum>(rule.momentum) * load<Sum>(state.velocities, i) : Sum{0};
  const Sum v = has_momentum ? carried + Type::widen(x) : Type::widen(x);
  const Sum h = v + e;
  const auto y = Type::narrow(h);
  // Without the first condition -0 + 0 would become +0.
  const bool use = (e != 0 || carried != 0) && magnitude<Type>(x) < Type::kInf &&
                   magnitude<Type>(y) < Type::kInf;
  if (use) return {y, v, h, e};
  return {x, Type::widen(x), Type::widen(x), Sum{0}};
}

// NaN and infinities alone have a difference with themselves that is not 0.
template <typename Sum>
Sum finite_or_zero(Sum value) noexcept {
  return value - value == 0 ? value : Sum{0};
}

}  // namespace

void compensate_ref(DType dtype, const FeedbackRule& rule, const std::byte* values,
                    const FeedbackState& state, std::byte* sent, std::uint64_t count) noexcept {
  with_dtype(dtype, [&]<typename Type>(Type) {
    for (std::uint64_t i = 0; i < count; ++i) {
      store(sent, i, compensated<Type>(rule, values, state, i).sent);
    }
  });
}

void keep_rest_ref(DType dtype, const FeedbackRule& rule, const std::byte* values,
                   const std::byte* decoded, const FeedbackState& state,
                   std::uint64_t count) noexcept {
  with_dtype(dtype, [&]<typename Type>(Type) {
    using Sum = typename Type::Sum;
    const auto beta = static_cast<Sum>(rule.beta);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Compensated<Type> had = compensated<Type>(rule, values, state, i);
      const Sum d = Type::widen(load<typename Type::Bits>(decoded, i));
      Sum rest = had.sum - d;
      if (beta != 1) rest = (1 - beta) * had.residual + beta * rest;
      store(state.residuals, i, finite_or_zero(rest));
      if (state.velocities == nullptr) continue;
      store(state.velocities, i, d != 0 ? Sum{0} : finite_or_zero(had.velocity));
    }
  });
}

void keep_velocities(DType dtype, const FeedbackRule& rule, const std::byte* values,
                     const FeedbackState& state, std::uint64_t count) noexcept {
  with_dtype(dtype, [&]<typename Type>(Type) {
    using Sum = typename Type::Sum;
    for (std::uint64_t i = 0; i < count && state.velocities != nullptr; ++i) {
      store(state.velocities, i,
            finite_or_zero(compensated<Type>(rule, values, state, i).velocity));
    }
    if (count != 0) std::memset(state.residuals, 0, count * sizeof(Sum));
  });
}

}  // namespace gradwire::internal
