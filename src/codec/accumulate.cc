#include "codec/accumulate.h"

#include <cstdint>

#include "core/endian.h"
#include "core/float_bits.h"

namespace gradwire::internal {
namespace {

template <typename Bits, typename Sum, typename ToFloat>
void add_each(const std::byte* __restrict values, std::size_t count,
              std::byte* __restrict accumulator, ToFloat to_float) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const place = accumulator + i * sizeof(Sum);
    store_le<Sum>(place, load_le<Sum>(place) + to_float(load_le<Bits>(values + i * sizeof(Bits))));
  }
}

}  // namespace

std::optional<DType> accumulator_dtype(DType dtype) noexcept {
  if (!is_compressible(dtype)) return std::nullopt;
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

void accumulate(DType dtype, const std::byte* values, std::size_t count, std::byte* accumulator) {
  switch (dtype) {
    case DType::kFloat64:
      return add_each<double, double>(values, count, accumulator, [](double x) { return x; });
    case DType::kFloat16:
      return add_each<std::uint16_t, float>(values, count, accumulator, [](std::uint16_t bits) {
        return float32_from_bits(float32_bits_from_float16(bits));
      });
    case DType::kBFloat16:
      return add_each<std::uint16_t, float>(values, count, accumulator, [](std::uint16_t bits) {
        return float32_from_bits(float32_bits_from_bfloat16(bits));
      });
    default:
      return add_each<float, float>(values, count, accumulator, [](float x) { return x; });
  }
}

}  // namespace gradwire::internal
