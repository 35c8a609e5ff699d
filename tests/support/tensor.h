// Values for tests: an owner of typed bytes, and ways to fill it.
#ifndef GRADWIRE_TESTS_SUPPORT_TENSOR_H_
#define GRADWIRE_TESTS_SUPPORT_TENSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/float_bits.h"
#include "gradwire/codec.h"

namespace gradwire::test {

// Owns `count` values of one type.
struct Tensor {
  Tensor() = default;
  Tensor(DType type, std::uint64_t values) : dtype(type), count(values) {
    bytes.resize(static_cast<std::size_t>(values) * dtype_size(type));
  }

  TensorView view() { return {bytes.data(), count, dtype}; }
  ConstTensorView view() const { return {bytes.data(), count, dtype}; }
  template <typename T>
  T get(std::size_t index) const {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void set(std::size_t index, T value) {
    std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
  }
  // The value's bit pattern, whatever its type.
  std::uint64_t bits(std::size_t index) const {
    const std::size_t size = dtype_size(dtype);
    std::uint64_t pattern = 0;
    std::memcpy(&pattern, bytes.data() + index * size, size);
    return pattern;
  }
  void set_bits(std::size_t index, std::uint64_t pattern) {
    const std::size_t size = dtype_size(dtype);
    std::memcpy(bytes.data() + index * size, &pattern, size);
  }
  // A floating value, exactly.
  double value(std::size_t index) const {
    switch (dtype) {
      case DType::kFloat64:
        return get<double>(index);
      case DType::kFloat32:
        return get<float>(index);
      case DType::kFloat16:
        return internal::float32_from_bits(
            internal::float32_bits_from_float16(get<std::uint16_t>(index)));
      default:
        return internal::float32_from_bits(
            internal::float32_bits_from_bfloat16(get<std::uint16_t>(index)));
    }
  }

  DType dtype = DType::kFloat32;
  std::uint64_t count = 0;
  std::vector<std::byte> bytes;
};

// Any bit pattern.
inline Tensor random_bits(DType dtype, std::uint64_t count, std::uint64_t seed) {
  Tensor tensor(dtype, count);
  std::mt19937_64 random(seed);
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random() & 0xFF);
  return tensor;
}

// Normal values of scale `sigma`, as gradients look; random bits for types that do not float.
inline Tensor gradient_like(DType dtype, std::uint64_t count, std::uint64_t seed,
                            double sigma = 1e-3) {
  if (!is_compressible(dtype)) return random_bits(dtype, count, seed);
  Tensor tensor(dtype, count);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, sigma);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = normal(random);
    const std::uint32_t single = internal::float32_bits(static_cast<float>(value));
    switch (dtype) {
      case DType::kFloat64:
        tensor.set(i, value);
        break;
      case DType::kFloat32:
        tensor.set(i, single);
        break;
      case DType::kFloat16:
        tensor.set(i, internal::float16_from_float32_bits(single));
        break;
      default:
        tensor.set(i, internal::bfloat16_from_float32_bits(single));
        break;
    }
  }
  return tensor;
}

// Bits of the exponent and of the mantissa of a floating type.
struct FloatLayout {
  unsigned exponent = 0;
  unsigned mantissa = 0;
};
inline FloatLayout float_layout(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {11, 52};
    case DType::kFloat32:
      return {8, 23};
    case DType::kFloat16:
      return {5, 10};
    default:
      return {8, 7};
  }
}

// NaNs (quiet, signalling, with payloads), infinities, zeros, subnormals, extremes, and ones,
// each with both signs.
inline Tensor special_values(DType dtype) {
  const FloatLayout layout = float_layout(dtype);
  const std::uint64_t sign = std::uint64_t{1} << (layout.exponent + layout.mantissa);
  const std::uint64_t inf = ((std::uint64_t{1} << layout.exponent) - 1) << layout.mantissa;
  const std::uint64_t quiet = std::uint64_t{1} << (layout.mantissa - 1);
  const std::uint64_t least_normal = std::uint64_t{1} << layout.mantissa;
  const std::uint64_t one = ((std::uint64_t{1} << (layout.exponent - 1)) - 1) << layout.mantissa;
  const std::vector<std::uint64_t> patterns = {0,
                                               1,
                                               least_normal - 1,
                                               least_normal,
                                               least_normal + 1,
                                               one,
                                               one + 1,
                                               inf - 1,
                                               inf,
                                               inf + 1,
                                               inf + quiet - 1,
                                               inf + quiet,
                                               sign - 1,
                                               one / 2,
                                               one + one / 2,
                                               inf + quiet + 1};
  Tensor tensor(dtype, 2 * patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    tensor.set_bits(2 * i, patterns[i]);
    tensor.set_bits(2 * i + 1, patterns[i] | sign);
  }
  return tensor;
}

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_TENSOR_H_
