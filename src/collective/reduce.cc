#include "collective/reduce.h"

#include "core/dtype_traits.h"

namespace gradwire::internal {

void clear_accumulators(DType dtype, std::byte* accumulators, std::uint64_t count) noexcept {
  with_dtype(dtype, [&]<typename Type>(Type) {
    using Sum = typename Type::Sum;
    for (std::uint64_t i = 0; i < count; ++i) store(accumulators, i, Sum{-0.0});
  });
}

std::uint64_t finish_reduction(DType dtype, bool average, int world, const std::byte* accumulators,
                               std::byte* results, std::uint64_t count) noexcept {
  std::uint64_t nonfinite = 0;
  with_dtype(dtype, [&]<typename Type>(Type) {
    using Bits = typename Type::Bits;
    using Sum = typename Type::Sum;
    const Sum scale = average ? Sum{1} / static_cast<Sum>(world) : Sum{1};
    for (std::uint64_t i = 0; i < count; ++i) {
      const Bits bits = Type::narrow(load<Sum>(accumulators, i) * scale);
      const Bits size = magnitude<Type>(bits);
      nonfinite += size >= Type::kInf;
      store(results, i, size > Type::kInf ? Type::kQuietNan : bits);
    }
  });
  return nonfinite;
}

void add_error(DType dtype, const std::byte* values, const std::byte* decoded, std::uint64_t count,
               ErrorSums* sums) noexcept {
  with_dtype(dtype, [&]<typename Type>(Type) {
    using Bits = typename Type::Bits;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Bits a = load<Bits>(values, i);
      const Bits b = load<Bits>(decoded, i);
      if (magnitude<Type>(a) >= Type::kInf || magnitude<Type>(b) >= Type::kInf) continue;
      const double value = Type::widen(a);
      const double error = static_cast<double>(Type::widen(b)) - value;
      sums->error_squares += error * error;
      sums->value_squares += value * value;
    }
  });
}

}  // namespace gradwire::internal
