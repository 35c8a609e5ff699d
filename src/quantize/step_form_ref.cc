#include "quantize/step_form_ref.h"

#include <algorithm>
#include <bit>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kSign = Float32Format::kSign;
constexpr std::uint32_t kMagnitude = Float32Format::kMagnitude;
// Adding it rounds to a multiple of 2^-14 (the unit in the last place from 2^9 to 2^10), to
// nearest even, for sums in that range; subtracting it again is exact.
constexpr float kMagic = 0x1.8p9f;
constexpr float kUnit = 0x1p-14f;

// Tokens and lane bits of q x kUnit as a float32 pattern, |q| <= 2047.
inline std::uint8_t token_of(std::uint32_t pattern) noexcept {
  return static_cast<std::uint8_t>((pattern >> 22) & 31);
}
inline std::uint16_t lane_bits_of(std::uint32_t pattern) noexcept {
  return static_cast<std::uint16_t>(((pattern >> 16) & 0x8000u) | ((pattern >> 7) & 0x7FFFu));
}
// The inverse, but for token 0.
inline std::uint32_t pattern_of(std::uint32_t token, std::uint32_t lane_bits) noexcept {
  return ((lane_bits & 0x8000u) << 16) | ((token + 2 * 112) << 22) | ((lane_bits & 0x7FFFu) << 7);
}

std::uint32_t quantize_fast(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                            std::uint32_t q_max, std::uint8_t* tokens,
                            std::uint16_t* lane_bits) noexcept {
  const float scale = power_of_two(-14 - k);
  // A sum outside the range of kMagic is far above every limit, and stays so when rounded. Inf
  // and NaN have larger patterns than any number.
  const std::uint32_t limit = std::bit_cast<std::uint32_t>(static_cast<float>(q_max) * kUnit);
  std::uint32_t escapes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float scaled = std::bit_cast<float>(values[i]) * scale;
    const std::uint32_t pattern = std::bit_cast<std::uint32_t>((scaled + kMagic) - kMagic);
    const bool escape =
        static_cast<std::int32_t>(pattern & kMagnitude) > static_cast<std::int32_t>(limit);
    const std::uint32_t kept = escape ? 0 : pattern;
    tokens[i] = static_cast<std::uint8_t>(token_of(kept) | (escape ? kStepEscape : 0));
    lane_bits[i] = lane_bits_of(kept);
    escapes += escape ? 1 : 0;
  }
  return escapes;
}

// |x| / 2^k to nearest even for a finite x, or 4096 for anything above that.
template <typename Format>
std::uint32_t exact_quotient(typename Format::Wide magnitude, std::int32_t k) noexcept {
  using Wide = typename Format::Wide;
  constexpr Wide kMuch = 4096;
  constexpr auto kMantissa = static_cast<std::int32_t>(Format::kMantissaBits);
  const auto field = static_cast<std::int32_t>(magnitude >> kMantissa);
  const Wide significand =
      (magnitude & Format::kMantissaMask) | (field > 0 ? Format::kHidden : Wide{0});
  // |x| = significand x 2^(max(field, 1) - 1 + kLeastExponent).
  const std::int32_t up = std::max(field, 1) - 1 + Format::kLeastExponent - k;
  if (significand == 0) return 0;
  if (up >= 0) {
    const Wide q = up > 12 || significand >= kMuch ? kMuch : significand << up;
    return static_cast<std::uint32_t>(std::min(q, kMuch));
  }
  if (up < -(kMantissa + 2)) return 0;  // less than half
  const std::int32_t down = -up;
  const Wide odd = (significand >> down) & 1;
  const Wide rounded = (significand + (Wide{1} << (down - 1)) - 1 + odd) >> down;
  return static_cast<std::uint32_t>(std::min(rounded, kMuch));
}

template <typename Format>
std::uint32_t quantize_exact(const typename Format::Bits* values, std::uint32_t count,
                             std::int32_t k, std::uint32_t q_max, std::uint8_t* tokens,
                             std::uint16_t* lane_bits) noexcept {
  using Wide = typename Format::Wide;
  const std::uint32_t limit = std::min(q_max, step_finite_most<Format>(k));
  std::uint32_t escapes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    const std::uint32_t q =
        magnitude >= Format::kInfinity ? ~0u : exact_quotient<Format>(magnitude, k);
    if (q > limit) {
      tokens[i] = kStepEscape;
      lane_bits[i] = 0;
      ++escapes;
      continue;
    }
    const std::uint32_t pattern = std::bit_cast<std::uint32_t>(static_cast<float>(q) * kUnit);
    const std::uint32_t sign = (values[i] & Format::kSign) != 0 ? kSign : 0;
    tokens[i] = token_of(pattern);
    lane_bits[i] = lane_bits_of(q == 0 ? 0 : pattern | sign);
  }
  return escapes;
}

void dequantize_fast(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                     std::uint32_t count, std::int32_t k, std::uint32_t* values) noexcept {
  const float scale = power_of_two(14 + k);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t pattern = pattern_of(tokens[i], lane_bits[i]);
    const std::uint32_t keep = tokens[i] == 0 ? 0 : ~0u;
    values[i] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(pattern & keep) * scale);
  }
}

// Bits of q x 2^k for 1 <= q <= 2047 and k >= kLeastExponent, exact; Inf's or above if too large.
template <typename Format>
typename Format::Wide exact_product(std::uint32_t q, std::int32_t k) noexcept {
  using Wide = typename Format::Wide;
  constexpr auto kMantissa = static_cast<std::int32_t>(Format::kMantissaBits);
  const std::int32_t top = static_cast<std::int32_t>(std::bit_width(q)) - 1;
  const std::int32_t field = top + k + Format::kBias;
  // Subnormal: in units of the least.
  if (field <= 0) return static_cast<Wide>(q) << (k - Format::kLeastExponent);
  const Wide mantissa = (static_cast<Wide>(q) << (kMantissa - top)) & Format::kMantissaMask;
  return (static_cast<Wide>(field) << kMantissa) | mantissa;
}

template <typename Format>
bool dequantize_exact(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                      std::uint32_t count, std::int32_t k, typename Format::Bits* values) noexcept {
  using Wide = typename Format::Wide;
  bool finite = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    values[i] = 0;
    if (tokens[i] == 0 || tokens[i] == kStepEscape) continue;
    const std::uint32_t pattern = pattern_of(tokens[i], lane_bits[i]);
    const float q = std::bit_cast<float>(pattern & kMagnitude) * (1 / kUnit);
    const Wide magnitude = exact_product<Format>(static_cast<std::uint32_t>(q), k);
    finite = finite && magnitude < Format::kInfinity;
    values[i] = ((pattern & kSign) != 0 ? Format::kSign : Wide{0}) | magnitude;
  }
  return finite;
}

}  // namespace

std::uint32_t quantize_step_ref(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                                std::uint32_t q_max, std::uint8_t* tokens,
                                std::uint16_t* lane_bits) noexcept {
  const bool fast = k >= kStepFastMin && k <= kStepFastMax;
  return fast ? quantize_fast(values, count, k, q_max, tokens, lane_bits)
              : quantize_exact<Float32Format>(values, count, k, q_max, tokens, lane_bits);
}

bool dequantize_step_ref(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                         std::uint32_t count, std::int32_t k, std::uint32_t* values) noexcept {
  if (k < kStepFastMin || k > kStepFastMax) {
    return dequantize_exact<Float32Format>(tokens, lane_bits, count, k, values);
  }
  dequantize_fast(tokens, lane_bits, count, k, values);
  return true;
}

std::uint32_t quantize_step_ref(const std::uint64_t* values, std::uint32_t count, std::int32_t k,
                                std::uint32_t q_max, std::uint8_t* tokens,
                                std::uint16_t* lane_bits) noexcept {
  return quantize_exact<Float64Format>(values, count, k, q_max, tokens, lane_bits);
}

bool dequantize_step_ref(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                         std::uint32_t count, std::int32_t k, std::uint64_t* values) noexcept {
  return dequantize_exact<Float64Format>(tokens, lane_bits, count, k, values);
}

}  // namespace gradwire::internal
