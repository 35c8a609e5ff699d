// `block` of float16 and bfloat16: every scale that the type has, with all values that it may have
// beside it; the plain kernels against a model in binary64, every vector target against them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/fp_environment.h"
#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "quantize/block_int.h"
#include "support/float_model.h"

namespace gradwire::test {
namespace {

using internal::kMostBlockGroup;

constexpr std::uint32_t kPatterns = 1u << 16;
constexpr std::uint32_t kMagnitudes = kPatterns / 2;

double value_of(DType dtype, std::uint32_t bits) {
  const auto pattern = static_cast<std::uint16_t>(bits);
  return testing::read_value(dtype, reinterpret_cast<const std::byte*>(&pattern), 0);
}

// The scale of a group with this largest magnitude: the least bfloat16 that is not below it.
std::uint16_t model_scale(double largest) {
  if (largest == 0) return internal::kZeroGroupScale;
  if (!std::isfinite(largest)) return internal::kRawGroupScale;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(largest), -126) - 7);
  const double scale = std::ceil(largest / unit) * unit;
  if (scale < 0x1p-110) return internal::kRawGroupScale;
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(scale)) >> 16);
}

// For each proper scale of the type the largest magnitude that has it.
std::vector<std::uint16_t> scaled_magnitudes(DType dtype) {
  std::vector<std::uint16_t> found;
  for (std::uint32_t i = 1; i < kMagnitudes; ++i) {
    const std::uint16_t scale = model_scale(value_of(dtype, i));
    if (scale == internal::kRawGroupScale) continue;
    if (i + 1 == kMagnitudes || model_scale(value_of(dtype, i + 1)) != scale) {
      found.push_back(static_cast<std::uint16_t>(i));
    }
  }
  return found;
}

// Chunk c: all patterns. Those that may be in a group of scale c are, as each group begins with the
// largest magnitude that has the scale; the others are in groups of their own.
struct BlockCheck {
  DType dtype;
  unsigned bits;
  std::vector<std::uint16_t> tops = scaled_magnitudes(dtype);
  std::vector<std::string_view> targets = internal::simd_targets();
  std::vector<std::uint16_t> given = {};
  std::array<std::int8_t, kMostBlockGroup> integers = {}, other_integers = {};
  std::array<std::uint8_t, kMostBlockGroup> patterns = {};
  std::array<std::uint16_t, kMostBlockGroup> values = {}, other_values = {};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    const std::uint32_t top = tops[chunk];
    for (std::uint32_t next = 0; next < kMagnitudes;) {
      const std::uint32_t end = next <= top ? top + 1 : kMagnitudes;
      given.clear();
      if (next <= top) given.push_back(static_cast<std::uint16_t>(top));
      for (; next < end && given.size() + 2 <= kMostBlockGroup; ++next) {
        given.push_back(static_cast<std::uint16_t>(next));
        given.push_back(static_cast<std::uint16_t>(next | kMagnitudes));
      }
      if (std::string text = group_violation(); !text.empty()) {
        return text + " (in groups of " + std::to_string(top) + ")";
      }
    }
    return {};
  }

  std::string group_violation() {
    double largest = 0;
    for (const std::uint16_t pattern : given) {
      const double magnitude = std::fabs(value_of(dtype, pattern));
      if (!(magnitude <= largest)) largest = magnitude;  // a NaN stays
      if (!std::isfinite(largest)) break;
    }
    const std::uint16_t expected = model_scale(largest);
    std::uint16_t scale = 0;
    encode(internal::block_int_encode_ref, &scale, &integers);
    if (scale != expected) return "the scale is " + std::to_string(scale);
    const bool proper = scale != internal::kZeroGroupScale && scale != internal::kRawGroupScale;
    for (std::size_t i = 0; i < given.size(); ++i) {
      patterns[i] = static_cast<std::uint8_t>(integers[i] & ((1 << bits) - 1));
    }
    if (proper && !decode(internal::block_int_dequantize_ref, scale, &values)) return refused();
    for (const std::string_view target : targets) {
      internal::use_simd_target(target);
      std::uint16_t other = 0;
      encode(internal::block_int_encode_simd, &other, &other_integers);
      if (other != scale) return std::string(target) + ": another scale";
      if (!same(integers, other_integers)) return std::string(target) + ": other integers";
      if (!proper) continue;
      if (!decode(internal::block_int_dequantize_simd, scale, &other_values)) return refused();
      if (!same(values, other_values)) return std::string(target) + ": other values";
    }
    return proper ? bound_violation(scale) : "";
  }

  template <typename Kernel>
  void encode(Kernel kernel, std::uint16_t* scale, std::array<std::int8_t, kMostBlockGroup>* to) {
    kernel(dtype, reinterpret_cast<const std::byte*>(given.data()), given.size(), kMostBlockGroup,
           bits, {}, scale, to->data());
  }
  template <typename Kernel>
  bool decode(Kernel kernel, std::uint16_t scale, std::array<std::uint16_t, kMostBlockGroup>* to) {
    return kernel(dtype, patterns.data(), given.size(), scale, bits,
                  reinterpret_cast<std::byte*>(to->data()));
  }
  template <typename Array>
  bool same(const Array& a, const Array& b) const {
    return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(given.size()), b.begin());
  }
  static std::string refused() { return "the decoder refuses what the encoder made"; }

  // docs/error_bounds.md.
  std::string bound_violation(std::uint16_t scale) const {
    const double s = value_of(DType::kBFloat16, scale);
    const double bound = s / ((1 << (bits - 1)) - 1) / 2 * (1 + 0x1p-10);
    const int mantissa = dtype == DType::kFloat16 ? 10 : 7;
    const int least = dtype == DType::kFloat16 ? -14 : -126;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double x = value_of(dtype, given[i]);
      const double y = value_of(dtype, values[i]);
      const int exponent = y == 0 ? least : std::max(std::ilogb(y), least);
      const double rounding = std::ldexp(0.5, exponent - mantissa);
      if (!(std::fabs(x - y) <= std::min(bound + rounding, 2 * bound))) {
        return finding(given[i], values[i], "beyond the bound");
      }
    }
    return {};
  }
};

}  // namespace

void add_half_block_cases(std::vector<ExhaustiveCase>* cases) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const unsigned bits : {4u, 6u, 8u}) {
      cases->push_back(
          {.name = std::string(dtype_name(dtype)) + " block of " + std::to_string(bits) +
                   " bits, every scale",
           .promise = "N1",
           .chunks = scaled_magnitudes(dtype).size(),
           .patterns = kPatterns,
           .all_targets = true,
           .make_check = [=] { return ChunkCheck(BlockCheck{.dtype = dtype, .bits = bits}); }});
    }
  }
}

}  // namespace gradwire::test
