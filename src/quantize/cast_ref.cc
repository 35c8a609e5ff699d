#include <cstdint>

#include "core/endian.h"
#include "core/float_bits.h"
#include "quantize/cast.h"

namespace gradwire::internal {
namespace {

template <typename In, typename Out, typename Convert>
void convert_each(const std::byte* __restrict in, std::size_t count, std::byte* __restrict out,
                  Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    store_le<Out>(out + i * sizeof(Out), convert(load_le<In>(in + i * sizeof(In))));
  }
}

}  // namespace

void cast_narrow(DType from, DType to, const std::byte* in, std::size_t count, std::byte* out) {
  const bool half = to == DType::kFloat16;
  if (from == DType::kFloat32) {
    if (half) {
      convert_each<std::uint32_t, std::uint16_t>(in, count, out, float16_from_float32_bits);
    } else {
      convert_each<std::uint32_t, std::uint16_t>(in, count, out, bfloat16_from_float32_bits);
    }
    return;
  }
  const auto narrow = [half](std::uint64_t bits) {
    const std::uint32_t odd = float32_bits_from_float64_to_odd(bits);
    return half ? float16_from_float32_bits(odd) : bfloat16_from_float32_bits(odd);
  };
  convert_each<std::uint64_t, std::uint16_t>(in, count, out, narrow);
}

void cast_widen(DType from, DType to, const std::byte* in, std::size_t count, std::byte* out) {
  const bool half = from == DType::kFloat16;
  if (to == DType::kFloat32) {
    if (half) {
      convert_each<std::uint16_t, std::uint32_t>(in, count, out, float32_bits_from_float16);
    } else {
      convert_each<std::uint16_t, std::uint32_t>(in, count, out, float32_bits_from_bfloat16);
    }
    return;
  }
  const auto widen = [half](std::uint16_t bits) {
    return float64_bits_from_float32_bits(half ? float32_bits_from_float16(bits)
                                               : float32_bits_from_bfloat16(bits));
  };
  convert_each<std::uint16_t, std::uint64_t>(in, count, out, widen);
}

}  // namespace gradwire::internal
