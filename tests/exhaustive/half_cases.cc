// Float16 and bfloat16: all 2^16 patterns with everything that a group can bring; and the
// conversions of `cast`, float32 to half over all 2^32 patterns.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/fp_environment.h"
#include "exhaustive/cases.h"
#include "quantize/cast.h"
#include "quantize/exponent_form_ref.h"
#include "support/float_model.h"

namespace gradwire::test {
namespace {

constexpr std::uint32_t kPatterns = 1u << 16;
constexpr std::uint32_t kGroup = 4096;

// Chunk (mantissa, T): all patterns with the mantissa cut to M bits, so that no bit is lost.
template <typename Format>
struct LosslessCheck {
  std::vector<std::uint16_t> given = std::vector<std::uint16_t>(kPatterns);
  std::vector<std::uint16_t> values = std::vector<std::uint16_t>(kPatterns);
  std::array<std::uint8_t, kGroup> tokens{};
  std::array<std::uint16_t, kGroup> lane_bits{};
  std::array<std::byte, kGroup> plane{};

  static constexpr std::uint64_t kTops = Format::kExponentMax + 1;

  std::string operator()(std::uint64_t chunk) {
    const auto mantissa = static_cast<std::uint32_t>(chunk / kTops);
    const auto top = static_cast<std::int32_t>(chunk % kTops);
    const std::uint32_t keep = ~((1u << (Format::kMantissaBits - mantissa)) - 1);
    for (std::uint32_t i = 0; i < kPatterns; ++i) {
      // Neighbours of many exponents, as in float32_chunk().
      const std::uint32_t pattern = (i * 40503u) & 0xFFFFu;
      const bool finite = (pattern & Format::kInfinity) != Format::kInfinity;
      given[i] = static_cast<std::uint16_t>(finite ? pattern & keep : pattern);
    }
    const internal::MantissaSplit split = internal::split_mantissa(mantissa);
    for (std::uint32_t first = 0; first < kPatterns; first += kGroup) {
      if (std::string text = group_violation(first, top, split); !text.empty()) {
        return text + " (T " + std::to_string(top) + ", M " + std::to_string(mantissa) + ")";
      }
    }
    return {};
  }

  std::string group_violation(std::uint32_t first, std::int32_t top,
                              internal::MantissaSplit split) {
    const std::uint32_t escapes = internal::quantize_exponent_ref<Format>(
        given.data() + first, kGroup, top, split, {0, internal::kExponentTokenMax}, tokens.data(),
        lane_bits.data(), plane.data());
    if (!internal::dequantize_exponent_ref<Format>(tokens.data(), lane_bits.data(), plane.data(),
                                                   kGroup, top, split, values.data() + first)) {
      return "the decoder refuses what the encoder made";
    }
    std::uint32_t counted = 0;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      const std::uint32_t pattern = given[first + i];
      const std::uint32_t magnitude = pattern & Format::kMagnitude;
      const std::int32_t token =
          top - static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
      const bool representable =
          magnitude < Format::kInfinity && (magnitude == 0 || (token >= 0 && token <= 29));
      const bool escaped = tokens[i] == internal::kExponentEscape;
      if (escaped) ++counted;
      if (escaped == representable) return finding(pattern, 0, "escape or not is wrong");
      if (!escaped && values[first + i] != pattern) {
        return finding(pattern, values[first + i], "not bit for bit");
      }
    }
    return counted == escapes ? "" : "the number of escapes is not that of the tokens";
  }
};

// Narrowing: the nearest value of the 16-bit type, ties to even, by the definition of the type.
struct NarrowCheck {
  DType to;
  std::array<std::uint32_t, kChunkValues> given{};
  std::array<std::uint16_t, kChunkValues> narrow{};
  std::array<std::uint32_t, kChunkValues> wide{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    float32_chunk(chunk, given);
    internal::cast_narrow(DType::kFloat32, to, reinterpret_cast<const std::byte*>(given.data()),
                          kChunkValues, reinterpret_cast<std::byte*>(narrow.data()));
    internal::cast_widen(to, DType::kFloat32, reinterpret_cast<const std::byte*>(narrow.data()),
                         kChunkValues, reinterpret_cast<std::byte*>(wide.data()));
    for (std::size_t i = 0; i < kChunkValues; ++i) {
      if (std::string text = violation(given[i], wide[i]); !text.empty()) return text;
    }
    return {};
  }

  std::string violation(std::uint32_t pattern, std::uint32_t decoded) const {
    const bool half = to == DType::kFloat16;
    const int bias = half ? 15 : 127, mantissa = half ? 10 : 7;
    const double x = static_cast<double>(std::bit_cast<float>(pattern));
    const double y = static_cast<double>(std::bit_cast<float>(decoded));
    if (((pattern ^ decoded) & 0x80000000u) != 0) return finding(pattern, decoded, "sign");
    if (x != x) return y != y ? "" : finding(pattern, decoded, "was NaN");
    // In units of the last place; subnormals share the unit of the smallest normal numbers.
    const auto field = static_cast<int>((pattern >> 23) & 255);
    const int exponent = std::max(field - 127, 1 - bias) - mantissa;
    const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
    const double most = std::ldexp(2 - std::ldexp(1.0, -mantissa), bias);
    const double nearest = std::nearbyint(x / unit) * unit;
    const bool overflows = std::fabs(nearest) > most;
    if (overflows) {
      return std::isinf(y) ? "" : finding(pattern, decoded, "must overflow");
    }
    if (!(std::fabs(x - y) <= unit / 2)) return finding(pattern, decoded, "beyond half a unit");
    return y == nearest ? "" : finding(pattern, decoded, "not the nearest");
  }
};

// Widening: the same value; NaN keeps sign and mantissa.
std::string widen_violation(DType from) {
  std::vector<std::uint16_t> given(kPatterns);
  for (std::uint32_t i = 0; i < kPatterns; ++i) given[i] = static_cast<std::uint16_t>(i);
  const auto* bytes = reinterpret_cast<const std::byte*>(given.data());
  std::vector<std::uint32_t> wide(kPatterns);
  std::vector<double> widest(kPatterns);
  internal::cast_widen(from, DType::kFloat32, bytes, kPatterns,
                       reinterpret_cast<std::byte*>(wide.data()));
  internal::cast_widen(from, DType::kFloat64, bytes, kPatterns,
                       reinterpret_cast<std::byte*>(widest.data()));
  const std::uint32_t mantissa = from == DType::kFloat16 ? 10 : 7;
  for (std::uint32_t i = 0; i < kPatterns; ++i) {
    const double model = testing::read_value(from, bytes, i);
    const double value = static_cast<double>(std::bit_cast<float>(wide[i]));
    if (model != model) {
      const std::uint32_t bits = (i & ((1u << mantissa) - 1)) << (23 - mantissa);
      const std::uint32_t expected = (i & 0x8000u) << 16 | 0x7F800000u | bits;
      if (wide[i] != expected) return finding(i, wide[i], "NaN");
      if (widest[i] == widest[i]) return finding(i, wide[i], "NaN to float64");
      continue;
    }
    const bool same = value == model && widest[i] == model &&
                      std::signbit(value) == std::signbit(model) &&
                      std::signbit(widest[i]) == std::signbit(model);
    if (!same) return finding(i, wide[i], "not the same value");
  }
  return {};
}

template <typename Format>
void add_lossless(std::string name, std::vector<ExhaustiveCase>* cases) {
  cases->push_back({.name = name + " lossless, every T and M",
                    .promise = "N4",
                    .chunks = LosslessCheck<Format>::kTops * (Format::kMantissaBits + 1),
                    .patterns = kPatterns,
                    .make_check = [] { return ChunkCheck(LosslessCheck<Format>()); }});
}

}  // namespace

void add_half_cases(std::vector<ExhaustiveCase>* cases) {
  add_lossless<internal::Float16Format>("float16", cases);
  add_lossless<internal::BFloat16Format>("bfloat16", cases);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::string name(dtype_name(dtype));
    cases->push_back({.name = name + " to float32 and float64",
                      .promise = "N1",
                      .chunks = 1,
                      .patterns = kPatterns,
                      .make_check = [dtype] {
                        return ChunkCheck(
                            [dtype](std::uint64_t) { return widen_violation(dtype); });
                      }});
    cases->push_back({.name = "float32 cast to " + name,
                      .promise = "N1",
                      .chunks = kFloat32Chunks,
                      .patterns = kChunkValues,
                      .make_check = [dtype] { return ChunkCheck(NarrowCheck{.to = dtype}); }});
  }
}

}  // namespace gradwire::test
