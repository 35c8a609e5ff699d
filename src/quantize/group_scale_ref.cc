#include "quantize/group_scale_ref.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kChunk = 256;
// From here on 2^(137 - A) is a normal float32 and subnormals are too small for s.
constexpr std::int32_t kFastTop = 11;

// A of any values: the largest exponent field of a finite one, at least 1.
template <typename Format>
std::int32_t finite_top(const typename Format::Bits* values, std::uint32_t count) noexcept {
  std::int32_t top = 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const typename Format::Wide magnitude = values[i] & Format::kMagnitude;
    if (magnitude >= Format::kInfinity) continue;
    top = std::max(top, static_cast<std::int32_t>(magnitude >> Format::kMantissaBits));
  }
  return top;
}

// For float32, when all values are finite and A is at least kFastTop: s is then
// |x| 2^(137 - A) cut to an integer. The product is exact wherever it is 1 or more, so neither
// the rounding mode nor flush-to-zero matters; subnormals are below 1 and count 0 in both ways.
std::uint64_t fast_square_sum(const std::uint32_t* values, std::uint32_t count,
                              std::int32_t top) noexcept {
  const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 137 - top) << 23);
  std::uint64_t sum = 0;
  alignas(64) std::array<std::int32_t, kChunk> s;
  alignas(64) std::array<std::int16_t, 2 * kChunk> halves;
  for (std::uint32_t first = 0; first < count; first += kChunk) {
    const std::uint32_t n = std::min(count - first, kChunk);
    for (std::uint32_t i = 0; i < n; ++i) {
      const float magnitude = std::bit_cast<float>(values[first + i] & Float32Format::kMagnitude);
      s[i] = static_cast<std::int32_t>(magnitude * scale);
    }
    // s has 11 bits: seen as pairs of 16-bit numbers, one of each pair is s and the other 0, and
    // compilers know a product of 16-bit numbers that adds pairs. 256 x 2^22 is below 2^31.
    std::memcpy(halves.data(), s.data(), n * sizeof(std::int32_t));
    std::int32_t chunk_sum = 0;
    for (std::uint32_t i = 0; i < 2 * n; ++i) chunk_sum += halves[i] * halves[i];
    sum += static_cast<std::uint32_t>(chunk_sum);
  }
  return sum;
}

}  // namespace

template <typename Format>
SquareSum square_sum_ref(const typename Format::Bits* values, std::uint32_t count,
                         std::int32_t top) noexcept {
  using Wide = typename Format::Wide;
  SquareSum result;
  constexpr std::uint32_t kDown = Format::kMantissaBits > 10 ? Format::kMantissaBits - 10 : 0;
  constexpr std::uint32_t kUp = Format::kMantissaBits < 10 ? 10 - Format::kMantissaBits : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    if (magnitude >= Format::kInfinity) continue;
    const auto field = static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
    const Wide significand =
        (magnitude & Format::kMantissaMask) + (field > 0 ? Format::kHidden : 0);
    const std::int32_t shift = std::min(top - std::max(field, 1), 12);  // s has 11 bits
    const std::uint64_t s = ((significand << kUp) >> kDown) >> shift;
    result.sum += s * s;
    ++result.finite;
  }
  return result;
}

std::uint64_t scale_factor(double x) noexcept { return static_cast<std::uint64_t>(x * x * 0x1p28); }

GroupScale scale_from_squares(std::uint64_t sum, std::uint64_t count, std::int32_t top,
                              std::uint64_t factor) noexcept {
  GroupScale result;
  result.finite = true;
  // floor(256 S / c) without overflow for any S.
  const std::uint64_t mean = sum / count * 256 + sum % count * 256 / count;
  const std::uint64_t y = mean * factor;
  result.vanishes = y == 0;
  if (result.vanishes) return result;
  // (log2 y - 36) / 2, rounded down: an arithmetic shift.
  const std::int32_t j = (static_cast<std::int32_t>(std::bit_width(y)) - 1 - 36) >> 1;
  result.exponent = j + top - 10;
  return result;
}

template <typename Format>
GroupScale group_scale_ref(const typename Format::Bits* values, std::uint32_t count,
                           std::uint64_t factor) noexcept {
  using Wide = typename Format::Wide;
  Wide any = 0;
  Wide largest = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    any |= values[i];
    // Signed, as vector units before SSE4.1 have no unsigned maximum.
    using Signed = std::make_signed_t<Wide>;
    largest = static_cast<Wide>(std::max(static_cast<Signed>(largest),
                                         static_cast<Signed>(values[i] & Format::kMagnitude)));
  }
  GroupScale result;
  result.zero = largest == 0;
  result.negative_zero = result.zero && any != 0;
  if (result.zero) return result;

  const auto top = static_cast<std::int32_t>(largest >> Format::kMantissaBits);
  if constexpr (Format::kMantissaBits == Float32Format::kMantissaBits) {
    if (top >= kFastTop && top < Format::kExponentMax) {
      return scale_from_squares(fast_square_sum(values, count, top), count, top - Format::kBias,
                                factor);
    }
  }
  const std::int32_t finite = finite_top<Format>(values, count);
  const SquareSum squares = square_sum_ref<Format>(values, count, finite);
  result.finite = squares.finite > 0;
  if (!result.finite) return result;
  return scale_from_squares(squares.sum, squares.finite, finite - Format::kBias, factor);
}

template SquareSum square_sum_ref<Float32Format>(const std::uint32_t*, std::uint32_t,
                                                 std::int32_t) noexcept;
template SquareSum square_sum_ref<Float64Format>(const std::uint64_t*, std::uint32_t,
                                                 std::int32_t) noexcept;
template SquareSum square_sum_ref<Float16Format>(const std::uint16_t*, std::uint32_t,
                                                 std::int32_t) noexcept;
template SquareSum square_sum_ref<BFloat16Format>(const std::uint16_t*, std::uint32_t,
                                                  std::int32_t) noexcept;

template GroupScale group_scale_ref<Float32Format>(const std::uint32_t*, std::uint32_t,
                                                   std::uint64_t) noexcept;
template GroupScale group_scale_ref<Float64Format>(const std::uint64_t*, std::uint32_t,
                                                   std::uint64_t) noexcept;
template GroupScale group_scale_ref<Float16Format>(const std::uint16_t*, std::uint32_t,
                                                   std::uint64_t) noexcept;
template GroupScale group_scale_ref<BFloat16Format>(const std::uint16_t*, std::uint32_t,
                                                    std::uint64_t) noexcept;

}  // namespace gradwire::internal
