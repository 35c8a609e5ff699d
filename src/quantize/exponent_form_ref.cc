#include "quantize/exponent_form_ref.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/endian.h"

namespace gradwire::internal {
namespace {

// Mantissa bits that lane bits could hold at most: 15, below the sign.
constexpr std::uint32_t kLaneMantissa = 15;

// The highest mantissa bits as a number of 15 bits.
template <typename Format>
inline std::uint32_t mantissa_top(typename Format::Wide mantissa) noexcept {
  if constexpr (Format::kMantissaBits >= kLaneMantissa) {
    return static_cast<std::uint32_t>(mantissa >> (Format::kMantissaBits - kLaneMantissa));
  } else {
    return static_cast<std::uint32_t>(mantissa << (kLaneMantissa - Format::kMantissaBits));
  }
}

template <typename Format>
inline typename Format::Wide mantissa_from_top(std::uint32_t top) noexcept {
  using Wide = typename Format::Wide;
  if constexpr (Format::kMantissaBits >= kLaneMantissa) {
    return static_cast<Wide>(top) << (Format::kMantissaBits - kLaneMantissa);
  } else {
    return static_cast<Wide>(top) >> (kLaneMantissa - Format::kMantissaBits);
  }
}

// Sign and the u - 1 highest mantissa bits, of 16.
inline std::uint32_t lane_mask(MantissaSplit split) noexcept {
  return (0xFFFF0000u >> split.lane_bits()) & 0xFFFFu;
}

// Elements of the plane as numbers, little-endian.
inline void store_plane(std::byte* plane, std::uint32_t bytes, std::uint64_t value) noexcept {
  for (std::uint32_t b = 0; b < bytes; ++b) plane[b] = static_cast<std::byte>(value >> (8 * b));
}
inline std::uint64_t load_plane(const std::byte* plane, std::uint32_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::uint32_t b = 0; b < bytes; ++b) {
    value |= static_cast<std::uint64_t>(plane[b]) << (8 * b);
  }
  return value;
}

template <typename Format>
void write_plane(const typename Format::Bits* values, const std::uint8_t* tokens,
                 std::uint32_t count, std::uint32_t escapes, MantissaSplit split,
                 std::byte* plane) noexcept {
  const std::uint32_t shift = Format::kMantissaBits - split.mantissa;
  if (split.plane_bytes == 1) {
    for (std::uint32_t i = 0; i < count; ++i) plane[i] = static_cast<std::byte>(values[i] >> shift);
  } else if (split.plane_bytes == 2) {
    for (std::uint32_t i = 0; i < count; ++i) {
      store_le(plane + 2 * i, static_cast<std::uint16_t>(values[i] >> shift));
    }
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      store_plane(plane + i * split.plane_bytes, split.plane_bytes, values[i] >> shift);
    }
  }
  if (escapes == 0) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (tokens[i] != kExponentEscape) continue;
    std::memset(plane + i * split.plane_bytes, 0, split.plane_bytes);
  }
}

// ORs the plane's bits into values that have the rest.
template <typename Format>
void add_plane(const std::byte* plane, const std::uint8_t* tokens, std::uint32_t count,
               MantissaSplit split, typename Format::Bits* values) noexcept {
  using Bits = typename Format::Bits;
  const std::uint32_t shift = Format::kMantissaBits - split.mantissa;
  const auto add = [&](std::uint32_t i, std::uint64_t low) {
    const Bits bits = static_cast<Bits>(low << shift);
    values[i] = static_cast<Bits>(values[i] | (tokens[i] == kExponentZero ? Bits{0} : bits));
  };
  if (split.plane_bytes == 1) {
    for (std::uint32_t i = 0; i < count; ++i) add(i, static_cast<std::uint8_t>(plane[i]));
  } else if (split.plane_bytes == 2) {
    for (std::uint32_t i = 0; i < count; ++i) add(i, load_le<std::uint16_t>(plane + 2 * i));
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      add(i, load_plane(plane + i * split.plane_bytes, split.plane_bytes));
    }
  }
}

// Corrects tokens and lane bits of the values that have none in `range`: zeros and escapes.
// Returns the number of escapes.
template <typename Format>
std::uint32_t mark_others(const typename Format::Bits* values, std::uint32_t count,
                          std::int32_t top, TokenRange range, std::uint8_t* tokens,
                          std::uint16_t* lane_bits) noexcept {
  using Wide = typename Format::Wide;
  std::uint32_t escapes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    const auto field = static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
    const std::int32_t token = top - field;
    if (magnitude == 0) {
      tokens[i] = kExponentZero;  // its lane bits are the sign already
    } else if (field == Format::kExponentMax || token < static_cast<std::int32_t>(range.first) ||
               token > static_cast<std::int32_t>(range.last)) {
      tokens[i] = kExponentEscape;
      lane_bits[i] = 0;
      ++escapes;
    }
  }
  return escapes;
}

}  // namespace

template <typename Format>
std::uint32_t used_mantissa_bits(typename Format::Wide mantissas) noexcept {
  if (mantissas == 0) return 0;
  return Format::kMantissaBits - static_cast<std::uint32_t>(std::countr_zero(mantissas));
}

template <typename Format>
typename Format::Wide collect_mantissas(const std::byte* values, std::uint64_t count) noexcept {
  using Bits = typename Format::Bits;
  using Wide = typename Format::Wide;
  Wide all = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Bits value;
    std::memcpy(&value, values + i * sizeof(Bits), sizeof(Bits));
    const bool finite = (value & Format::kInfinity) != Format::kInfinity;
    all |= finite ? static_cast<Wide>(value) : Wide{0};
  }
  return all & Format::kMantissaMask;
}

template <typename Format>
std::uint32_t quantize_exponent_ref(const typename Format::Bits* values, std::uint32_t count,
                                    std::int32_t top, MantissaSplit split, TokenRange range,
                                    std::uint8_t* tokens, std::uint16_t* lane_bits,
                                    std::byte* plane) noexcept {
  using Wide = typename Format::Wide;
  constexpr std::uint32_t kSignDown = Format::kExponentBits + Format::kMantissaBits - 15;
  const auto mask = static_cast<std::uint32_t>(lane_mask(split) & 0x7FFFu);
  // All values as if each had a token, and whether that was so.
  std::int32_t largest = 0;
  std::int32_t smallest = Format::kExponentMax;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    const auto field = static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
    largest = std::max(largest, field);
    smallest = std::min(smallest, field);
    tokens[i] = static_cast<std::uint8_t>(top - field);
    const auto sign = static_cast<std::uint32_t>(values[i] >> kSignDown) & 0x8000u;
    lane_bits[i] = static_cast<std::uint16_t>(
        sign | (mantissa_top<Format>(magnitude & Format::kMantissaMask) & mask));
  }
  std::uint32_t escapes = 0;
  const auto first = static_cast<std::int32_t>(range.first);
  const auto last = static_cast<std::int32_t>(range.last);
  // Field 0 may be a zero, that of Inf is an escape whatever T is.
  if (smallest == 0 || largest == Format::kExponentMax || top - largest < first ||
      top - smallest > last) {
    escapes = mark_others<Format>(values, count, top, range, tokens, lane_bits);
  }
  if (split.plane_bytes > 0) write_plane<Format>(values, tokens, count, escapes, split, plane);
  return escapes;
}

template <typename Format>
void round_mantissa_ref(typename Format::Bits* values, std::uint32_t count,
                        std::uint32_t mantissa) noexcept {
  using Bits = typename Format::Bits;
  using Wide = typename Format::Wide;
  constexpr Wide kNan = Format::kInfinity | (Format::kHidden >> 1);
  const std::uint32_t drop = Format::kMantissaBits - mantissa;
  const Wide keep = ~((Wide{1} << drop) - 1);
  const Wide half = (Wide{1} << drop) >> 1;  // 0 if nothing is dropped
  const Wide below_half = half - (half != 0);
  const Wide lowest = half << 1;  // bit that is kept
  for (std::uint32_t i = 0; i < count; ++i) {
    const Wide magnitude = values[i] & Format::kMagnitude;
    // A carry runs into the exponent, as it should; from NaN it may reach the sign, no further.
    const Wide odd = (magnitude & lowest) != 0;
    const Wide rounded = (magnitude + below_half + odd) & keep;
    const bool refused = (rounded >= Format::kInfinity) | (magnitude < Format::kHidden);
    const Wide result = (values[i] & Format::kSign) | rounded;
    values[i] = static_cast<Bits>(magnitude == 0 ? 0 : (refused ? kNan : result));
  }
}

template <typename Format>
bool dequantize_exponent_ref(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                             const std::byte* plane, std::uint32_t count, std::int32_t top,
                             MantissaSplit split, typename Format::Bits* values) noexcept {
  using Bits = typename Format::Bits;
  using Wide = typename Format::Wide;
  // Fields from 0 to the largest of a number: always so for most T.
  bool valid = true;
  if (top < static_cast<std::int32_t>(kExponentTokenMax) || top >= Format::kExponentMax) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::int32_t field = top - tokens[i];
      const bool number = tokens[i] <= kExponentTokenMax;
      valid = valid && (!number || (field >= 0 && field < Format::kExponentMax));
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t token = tokens[i];
    const Wide field = static_cast<Wide>(static_cast<std::uint32_t>(top) - token);
    const Wide number =
        (field << Format::kMantissaBits) | mantissa_from_top<Format>(lane_bits[i] & 0x7FFFu);
    const Wide sign = (lane_bits[i] & 0x8000u) != 0 ? Format::kSign : Wide{0};
    values[i] = static_cast<Bits>(sign | (token == kExponentZero ? Wide{0} : number));
  }
  if (split.plane_bytes > 0) add_plane<Format>(plane, tokens, count, split, values);
  return valid;
}

#define GRADWIRE_INSTANTIATE(Format)                                                              \
  template std::uint32_t used_mantissa_bits<Format>(Format::Wide) noexcept;                       \
  template Format::Wide collect_mantissas<Format>(const std::byte*, std::uint64_t) noexcept;      \
  template void round_mantissa_ref<Format>(Format::Bits*, std::uint32_t, std::uint32_t) noexcept; \
  template std::uint32_t quantize_exponent_ref<Format>(                                           \
      const Format::Bits*, std::uint32_t, std::int32_t, MantissaSplit, TokenRange, std::uint8_t*, \
      std::uint16_t*, std::byte*) noexcept;                                                       \
  template bool dequantize_exponent_ref<Format>(const std::uint8_t*, const std::uint16_t*,        \
                                                const std::byte*, std::uint32_t, std::int32_t,    \
                                                MantissaSplit, Format::Bits*) noexcept
GRADWIRE_INSTANTIATE(Float32Format);
GRADWIRE_INSTANTIATE(Float64Format);
GRADWIRE_INSTANTIATE(Float16Format);
GRADWIRE_INSTANTIATE(BFloat16Format);
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire::internal
