#include <algorithm>
#include <array>
#include <type_traits>

#include "core/dtype_traits.h"
#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/block_int.h"
#include "quantize/levels.h"
#include "quantize/run_noise.h"

namespace gradwire::internal {
namespace {

float scale_value(std::uint16_t scale) noexcept {
  return float32_from_bits(float32_bits_from_bfloat16(scale));
}

// The largest magnitude of `count` values; Bits: of them.
template <typename Bits>
Bits largest_magnitude(const std::byte* values, std::size_t count) noexcept {
  // Magnitudes order like their bit patterns.
  Bits largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, load<Bits>(values, i) & (~Bits{0} >> 1));
  }
  return largest;
}

// Values as float32; rounded to nearest even if they are float64.
template <typename Type>
void to_float32(const std::byte* values, std::size_t count, std::byte* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(to, i, static_cast<float>(Type::widen(load<typename Type::Bits>(values, i))));
  }
}

// Finite float32 as values of the type: rounded to nearest even, but never to Inf.
template <typename Type>
void from_float32(const std::byte* from, std::size_t count, std::byte* values) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    float value = load<float>(from, i);
    if constexpr (sizeof(typename Type::Bits) == sizeof(std::uint16_t)) {
      const float most = Type::widen(Type::kInf - 1);
      value = std::min(std::max(value, -most), most);
    }
    store(values, i, Type::narrow(static_cast<typename Type::Sum>(value)));
  }
}

// A group's scale and integers.
template <typename Type>
std::uint16_t encode_group(const std::byte* values, std::size_t count, unsigned bits,
                           const BlockRounding& rounding, RunNoise& noise,
                           std::int8_t* integers) noexcept {
  std::array<std::byte, sizeof(float) * kMostBlockGroup> floats;
  to_float32<Type>(values, count, floats.data());
  std::uint16_t scale = block_int_scale(floats.data(), count);
  if constexpr (std::is_same_v<Type, Float64>) {
    scale = block_scale_of(largest_magnitude<std::uint64_t>(values, count));
  }
  if (scale == kZeroGroupScale || scale == kRawGroupScale) {
    std::fill_n(integers, count, std::int8_t{0});
  } else if (!rounding.stochastic) {
    block_int_quantize_nearest(floats.data(), count, scale, bits, integers);
  } else {
    block_int_quantize_stochastic(floats.data(), count, scale, bits,
                                  noise.fill(rounding.key, rounding.index, count), integers);
  }
  return scale;
}

}  // namespace

std::uint16_t block_int_scale(const std::byte* values, std::size_t count) noexcept {
  return block_scale_of(largest_magnitude<std::uint32_t>(values, count));
}

void block_int_quantize_nearest(const std::byte* values, std::size_t count, std::uint16_t scale,
                                unsigned bits, std::int8_t* integers) noexcept {
  levels_quantize_nearest_ref(values, count, scale_value(scale), bits, integers);
}

void block_int_quantize_stochastic(const std::byte* values, std::size_t count, std::uint16_t scale,
                                   unsigned bits, const std::uint16_t* noise,
                                   std::int8_t* integers) noexcept {
  levels_quantize_stochastic_ref(values, count, scale_value(scale), bits, noise, integers);
}

void block_int_encode_ref(DType dtype, const std::byte* values, std::size_t count,
                          std::uint32_t group, unsigned bits, const BlockRounding& rounding,
                          std::uint16_t* scales, std::int8_t* integers) noexcept {
  RunNoise noise;
  BlockRounding place = rounding;
  with_dtype(dtype, [&](auto type) {
    using Type = decltype(type);
    for (std::size_t first = 0; first < count; first += group) {
      const std::size_t n = std::min<std::size_t>(group, count - first);
      place.index = rounding.index + first;
      *scales++ = encode_group<Type>(values + sizeof(typename Type::Bits) * first, n, bits, place,
                                     noise, integers + first);
    }
  });
}

bool block_int_dequantize_ref(DType dtype, const std::uint8_t* patterns, std::size_t count,
                              std::uint16_t scale, unsigned bits, std::byte* values) noexcept {
  const float unit = scale_value(scale) / static_cast<float>(most_level(bits));
  std::array<std::byte, sizeof(float) * kMostBlockGroup> floats;
  if (!levels_dequantize_ref(patterns, count, unit, bits, floats.data())) return false;
  with_dtype(dtype, [&](auto type) { from_float32<decltype(type)>(floats.data(), count, values); });
  return true;
}

}  // namespace gradwire::internal
