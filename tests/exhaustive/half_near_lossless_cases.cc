// near_lossless of float16 and bfloat16 over all 2^16 patterns: kernels with every scale that a
// group can bring, and whole frames. The models work on the values in binary64.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/fp_environment.h"
#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "quantize/exponent_form_ref.h"
#include "quantize/float32_simd.h"
#include "quantize/half_float.h"
#include "support/float_model.h"

namespace gradwire::test {
namespace {

constexpr std::uint32_t kPatterns = 1u << 16;
constexpr std::uint32_t kGroup = 4096;
constexpr std::uint32_t kMostQ = 2047;
constexpr std::uint32_t kLeastMantissa = 2;

// Neighbours of many exponents, as in float32_chunk().
std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> patterns(kPatterns);
  for (std::uint32_t i = 0; i < kPatterns; ++i) {
    patterns[i] = static_cast<std::uint16_t>(i * 40503u);
  }
  return patterns;
}

template <typename Format>
constexpr DType kDtype = Format::kMantissaBits == 10 ? DType::kFloat16 : DType::kBFloat16;

template <typename Format>
double value_of(std::uint16_t pattern) {
  return testing::read_value(kDtype<Format>, reinterpret_cast<const std::byte*>(&pattern), 0);
}

// 2^(bias + 1): where finite values end.
template <typename Format>
double end_of_type() {
  return std::ldexp(1.0, Format::kBias + 1);
}

struct Coded {
  std::array<std::uint8_t, kGroup> tokens{};
  std::array<std::uint16_t, kGroup> lane_bits{};
  std::array<std::byte, kGroup> plane{};
  std::array<std::uint16_t, kGroup> values{};
  std::uint32_t escapes = 0;
  bool valid = false;

  bool operator==(const Coded&) const = default;
  void put_escapes_back(const std::uint16_t* given) {
    for (std::size_t i = 0; i < kGroup; ++i) {
      if (tokens[i] == internal::kStepEscape) values[i] = given[i];
    }
  }
  std::string count_violation() const {
    if (!valid) return "the decoder refuses what the encoder made";
    const auto counted = std::count(tokens.begin(), tokens.end(), internal::kStepEscape);
    return counted == escapes ? "" : "the number of escapes is not that of the tokens";
  }
};

// Chunk: k, from the least on.
template <typename Format>
struct HalfStepCheck {
  static constexpr std::uint64_t kChunks = Format::kBias - Format::kLeastExponent + 1;

  std::vector<std::string_view> targets = internal::simd_targets();
  std::vector<std::uint16_t> given = all_patterns();
  std::array<std::uint32_t, kGroup> wide{}, wide_back{};
  Coded plain{}, vector{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    const std::int32_t k = Format::kLeastExponent + static_cast<std::int32_t>(chunk);
    for (std::uint32_t first = 0; first < kPatterns; first += kGroup) {
      std::string text = group_violation(given.data() + first, k);
      if (!text.empty()) return text + " (k " + std::to_string(k) + ")";
    }
    return {};
  }

  std::string group_violation(const std::uint16_t* group, std::int32_t k) {
    code(internal::quantize_step_ref, internal::dequantize_step_ref, group, k, &plain);
    std::string text = model_violation(group, k);
    for (std::size_t t = 0; t < targets.size() && text.empty(); ++t) {
      internal::use_simd_target(targets[t]);
      code(internal::quantize_step_simd, internal::dequantize_step_simd, group, k, &vector);
      if (vector != plain) text = std::string(targets[t]) + ": not what the plain kernel makes";
    }
    return text;
  }

  using Quantize = std::uint32_t(const std::uint32_t*, std::uint32_t, std::int32_t, std::uint32_t,
                                 std::uint8_t*, std::uint16_t*);
  using Dequantize = bool(const std::uint8_t*, const std::uint16_t*, std::uint32_t, std::int32_t,
                          std::uint32_t*);

  // As the codec does: by way of float32.
  void code(Quantize quantize, Dequantize dequantize, const std::uint16_t* group, std::int32_t k,
            Coded* coded) {
    internal::widen_halves<Format>(reinterpret_cast<const std::byte*>(group), kGroup, wide.data());
    const std::uint32_t most = std::min(kMostQ, internal::step_finite_most<Format>(k));
    coded->escapes =
        quantize(wide.data(), kGroup, k, most, coded->tokens.data(), coded->lane_bits.data());
    coded->valid =
        dequantize(coded->tokens.data(), coded->lane_bits.data(), kGroup, k, wide_back.data());
    internal::narrow_halves<Format>(wide_back.data(), kGroup,
                                    reinterpret_cast<std::byte*>(coded->values.data()));
    coded->put_escapes_back(group);
  }

  // On the grid of 2^k, nearest, ties to even, +0 for zero, or an escape where that is not
  // possible; and no lane bits below those that the coder takes.
  std::string model_violation(const std::uint16_t* group, std::int32_t k) const {
    constexpr auto kLaneBits = internal::step_lane_bits(Format::kMantissaBits);
    const double step = std::ldexp(1.0, k);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const double x = value_of<Format>(group[i]);
      const double q = std::nearbyint(std::ldexp(x, -k));
      const bool representable =
          std::isfinite(x) && std::fabs(q) <= kMostQ && std::fabs(q) * step < end_of_type<Format>();
      const bool escaped = plain.tokens[i] == internal::kStepEscape;
      if (escaped == representable) return finding(group[i], 0, "escape or not is wrong");
      if (escaped) continue;
      const double y = value_of<Format>(plain.values[i]);
      if (!(std::fabs(x - y) <= step / 2)) return finding(group[i], plain.values[i], "the bound");
      if (y != q * step) return finding(group[i], plain.values[i], "not the nearest");
      if (q == 0 && plain.values[i] != 0) return finding(group[i], plain.values[i], "not +0");
      if ((plain.lane_bits[i] & (0xFFFFu >> kLaneBits[plain.tokens[i]])) != 0) {
        return finding(group[i], plain.values[i], "lane bits get lost");
      }
    }
    return plain.count_violation();
  }
};

// Chunk: M from 2 to all that there are, and T.
template <typename Format>
struct HalfMantissaCheck {
  static constexpr std::uint64_t kTops = Format::kExponentMax + 1;
  static constexpr std::uint64_t kChunks = kTops * (Format::kMantissaBits + 1 - kLeastMantissa);

  std::vector<std::uint16_t> given = all_patterns();
  std::array<std::uint16_t, kGroup> rounded{};
  Coded coded{};

  std::string operator()(std::uint64_t chunk) {
    const std::uint32_t mantissa = kLeastMantissa + static_cast<std::uint32_t>(chunk / kTops);
    const auto top = static_cast<std::int32_t>(chunk % kTops);
    for (std::uint32_t first = 0; first < kPatterns; first += kGroup) {
      code(given.data() + first, mantissa, top);
      std::string text = model_violation(given.data() + first, mantissa, top);
      if (!text.empty()) {
        return text + " (T " + std::to_string(top) + ", M " + std::to_string(mantissa) + ")";
      }
    }
    return {};
  }

  void code(const std::uint16_t* group, std::uint32_t mantissa, std::int32_t top) {
    const internal::MantissaSplit split = internal::split_mantissa(mantissa);
    std::copy_n(group, kGroup, rounded.data());
    internal::round_mantissa_ref<Format>(rounded.data(), kGroup, mantissa);
    coded.escapes = internal::quantize_exponent_ref<Format>(
        rounded.data(), kGroup, top, split, {0, internal::kExponentTokenMax}, coded.tokens.data(),
        coded.lane_bits.data(), coded.plane.data());
    coded.valid = internal::dequantize_exponent_ref<Format>(
        coded.tokens.data(), coded.lane_bits.data(), coded.plane.data(), kGroup, top, split,
        coded.values.data());
    coded.put_escapes_back(group);
  }

  std::string model_violation(const std::uint16_t* group, std::uint32_t mantissa,
                              std::int32_t top) const {
    const bool keeps_all = mantissa == Format::kMantissaBits;
    const double relative = keeps_all ? 0 : std::ldexp(1.0, -static_cast<int>(mantissa) - 1);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const double x = value_of<Format>(group[i]);
      double nearest = 0;
      bool representable = x == 0;
      if (std::isfinite(x) && std::fabs(x) >= std::ldexp(1.0, 1 - Format::kBias)) {
        const int unit = std::ilogb(x) - static_cast<int>(mantissa);
        nearest = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
        const int token = top - (std::ilogb(nearest) + Format::kBias);
        representable = std::fabs(nearest) < end_of_type<Format>() && token >= 0 && token <= 29;
      }
      const bool escaped = coded.tokens[i] == internal::kExponentEscape;
      if (escaped == representable) return finding(group[i], 0, "escape or not is wrong");
      if (escaped) continue;
      const double y = value_of<Format>(coded.values[i]);
      if (!(std::fabs(x - y) <= std::fabs(x) * relative)) {
        return finding(group[i], coded.values[i], "beyond the bound");
      }
      if (y != nearest) return finding(group[i], coded.values[i], "not the nearest");
      if (x == 0 && coded.values[i] != 0) return finding(group[i], coded.values[i], "not +0");
    }
    return coded.count_violation();
  }
};

template <typename Format>
void add_cases_of(std::vector<ExhaustiveCase>* cases) {
  const std::string name(dtype_name(kDtype<Format>));
  cases->push_back({.name = name + " step, every k",
                    .promise = "N1",
                    .chunks = HalfStepCheck<Format>::kChunks,
                    .patterns = kPatterns,
                    .all_targets = true,
                    .make_check = [] { return ChunkCheck(HalfStepCheck<Format>()); }});
  cases->push_back({.name = name + " mantissa, every T and M",
                    .promise = "N1",
                    .chunks = HalfMantissaCheck<Format>::kChunks,
                    .patterns = kPatterns,
                    .make_check = [] { return ChunkCheck(HalfMantissaCheck<Format>()); }});
}

}  // namespace

void add_half_near_lossless_cases(std::vector<ExhaustiveCase>* cases) {
  add_cases_of<internal::Float16Format>(cases);
  add_cases_of<internal::BFloat16Format>(cases);
}

}  // namespace gradwire::test
