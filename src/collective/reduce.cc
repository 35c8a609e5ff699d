#include "collective/reduce.h"

#include <bit>
#include <limits>

#include "core/endian.h"
#include "core/float_bits.h"

namespace gradwire::internal {
namespace {

// One trait per type: what lies in memory, what it is summed in, and the way between.
struct Float32 {
  using Bits = std::uint32_t;
  using Sum = float;
  static constexpr Bits kInf = kFloat32Inf;
  static constexpr Bits kQuietNan = 0x7FC00000u;
  static Sum widen(Bits bits) noexcept { return std::bit_cast<float>(bits); }
  static Bits narrow(Sum value) noexcept { return std::bit_cast<Bits>(value); }
};

struct Float64 {
  using Bits = std::uint64_t;
  using Sum = double;
  static constexpr Bits kInf = kFloat64Inf;
  static constexpr Bits kQuietNan = 0x7FF8000000000000u;
  static Sum widen(Bits bits) noexcept { return std::bit_cast<double>(bits); }
  static Bits narrow(Sum value) noexcept { return std::bit_cast<Bits>(value); }
};

struct Float16 {
  using Bits = std::uint16_t;
  using Sum = float;
  static constexpr Bits kInf = 0x7C00u;
  static constexpr Bits kQuietNan = 0x7E00u;
  static Sum widen(Bits bits) noexcept {
    return float32_from_bits(float32_bits_from_float16(bits));
  }
  static Bits narrow(Sum value) noexcept { return float16_from_float32_bits(float32_bits(value)); }
};

struct BFloat16 {
  using Bits = std::uint16_t;
  using Sum = float;
  static constexpr Bits kInf = 0x7F80u;
  static constexpr Bits kQuietNan = 0x7FC0u;
  static Sum widen(Bits bits) noexcept {
    return float32_from_bits(float32_bits_from_bfloat16(bits));
  }
  static Bits narrow(Sum value) noexcept { return bfloat16_from_float32_bits(float32_bits(value)); }
};

template <typename Function>
void with_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFloat64:
      return function(Float64{});
    case DType::kFloat16:
      return function(Float16{});
    case DType::kBFloat16:
      return function(BFloat16{});
    default:
      return function(Float32{});
  }
}

// All bits below the sign.
template <typename Type>
constexpr typename Type::Bits magnitude(typename Type::Bits bits) noexcept {
  // The cast before the shift: ~ of a 16-bit type is a negative int.
  using Bits = typename Type::Bits;
  return static_cast<Bits>(bits & (static_cast<Bits>(~Bits{0}) >> 1));
}

template <typename T>
T load(const std::byte* values, std::uint64_t index) noexcept {
  return load_le<T>(values + index * sizeof(T));
}

template <typename T>
void store(std::byte* values, std::uint64_t index, T value) noexcept {
  store_le(values + index * sizeof(T), value);
}

}  // namespace

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
