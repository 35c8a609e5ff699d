// The four types of values by their bits, for kernels over memory without alignment.
#ifndef GRADWIRE_CORE_DTYPE_TRAITS_H_
#define GRADWIRE_CORE_DTYPE_TRAITS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/endian.h"
#include "core/float_bits.h"
#include "gradwire/tensor_view.h"

namespace gradwire::internal {

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

// Calls function(trait of dtype), which must be one of the four.
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

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_DTYPE_TRAITS_H_
