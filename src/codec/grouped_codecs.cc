// The codecs of grouped blocks (docs/format.md 4.4): what their scales and codes are.
#include <array>
#include <cstring>

#include "codec/fixed_block.h"
#include "codec/grouped_block.h"
#include "core/float_bits.h"
#include "frame/limits.h"
#include "quantize/group_sums.h"
#include "quantize/hadamard.h"
#include "quantize/levels.h"
#include "quantize/mx.h"

namespace gradwire::internal {
namespace {

// ---- mxfp8, mxfp4 (4.5) ----

struct MxKernel {
  using Scale = std::uint8_t;
  static constexpr Scale kRaw = kMxRawScale;
  static constexpr bool kNoise = false;

  explicit MxKernel(const CodecSpec& spec)
      : element(spec.id == CodecId::kMxfp4              ? kE2M1
                : spec.cast_dtype == DType::kFloat8E5M2 ? kE5M2
                                                        : kE4M3) {}

  unsigned bits() const { return element.bits; }
  Scale encode(const std::byte* values, std::size_t count, const std::uint16_t*,
               std::uint8_t* codes) const {
    const Scale scale = mx_scale(largest_magnitude_simd(values, count), element);
    if (scale != kRaw) mx_quantize_simd(values, count, scale, element, codes);
    return scale;
  }
  const char* decode(Scale scale, const std::uint8_t* codes, std::size_t count,
                     std::byte* values) const {
    if (scale > 254 - element.top) return "a scale is out of range";
    if (!mx_dequantize_simd(codes, count, scale, element, values)) return "a code is not finite";
    return nullptr;
  }

  MxElement element;
};

// ---- levels ----

// Scales of levels: 0 or from 2^-110 to 2^127, so that neither m / scale nor m times the unit
// leaves the normal numbers.
constexpr std::uint32_t kLeastScale = (127u - 110u) << 23;
constexpr std::uint32_t kMostScale = 254u << 23;

constexpr bool is_level_scale(std::uint32_t bits) {
  return bits >= kLeastScale && bits <= kMostScale;
}

std::int8_t* as_integers(std::uint8_t* codes) { return reinterpret_cast<std::int8_t*>(codes); }

// Values of a group with that scale, float32 bits; the same errors for all codecs of levels.
const char* decode_levels(std::uint32_t scale, unsigned bits, float divisor,
                          const std::uint8_t* codes, std::size_t count, std::byte* values) {
  if (scale == 0) {
    std::fill_n(values, kGroupedValueBytes * count, std::byte{0});
    return nullptr;
  }
  if (!is_level_scale(scale)) return "a scale is out of range";
  const float unit = float32_from_bits(scale) / static_cast<float>(most_level(bits)) / divisor;
  if (!levels_dequantize_simd(codes, count, unit, bits, values)) {
    return "an integer is out of range";
  }
  return nullptr;
}

// qsgd, terngrad (4.6).
struct LevelsKernel {
  using Scale = std::uint32_t;  // float32
  static constexpr Scale kRaw = 0x7FC00000u;
  static constexpr bool kNoise = true;

  explicit LevelsKernel(const CodecSpec& codec) : spec(codec) {}

  unsigned bits() const { return spec.bits; }
  Scale encode(const std::byte* values, std::size_t count, const std::uint16_t* noise,
               std::uint8_t* codes) const {
    const std::uint32_t largest = largest_magnitude_simd(values, count);
    if (largest >= kFloat32Inf) return kRaw;
    if (largest == 0) {
      std::fill_n(codes, count, std::uint8_t{0});
      return 0;
    }
    const Scale scale = float32_bits(scale_of(values, count, largest));
    if (!is_level_scale(scale)) return kRaw;
    levels_quantize_stochastic_simd(values, count, float32_from_bits(scale), bits(), noise,
                                    as_integers(codes));
    return scale;
  }
  const char* decode(Scale scale, const std::uint8_t* codes, std::size_t count,
                     std::byte* values) const {
    return decode_levels(scale, bits(), 1, codes, count, values);
  }

 private:
  float scale_of(const std::byte* values, std::size_t count, std::uint32_t largest) const {
    const float most = float32_from_bits(largest);
    if (spec.id == CodecId::kQsgd) {
      return (spec.variant & kQsgdMax) != 0 ? most : norm_up_simd(values, count, largest);
    }
    if (spec.step == 0) return most;
    // Clipped to `clip` times the RMS: beyond the scale integers stop at m.
    return std::min(most, rms_up_simd(values, count, largest, spec.step));
  }

  const CodecSpec& spec;
};

// ---- sign (4.7) ----

struct SignKernel {
  using Scale = std::uint64_t;  // two float32: of code 0 in the low half, of code 1 in the high one
  static constexpr Scale kRaw = 0x7FC00000u;
  static constexpr bool kNoise = false;

  unsigned bits() const { return 1; }
  Scale encode(const std::byte* values, std::size_t count, const std::uint16_t*,
               std::uint8_t* codes) const {
    const std::uint32_t largest = largest_magnitude_simd(values, count);
    if (largest >= kFloat32Inf) return kRaw;
    const SignMeans means = sign_means_simd(values, count, largest);
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = load_le<std::uint32_t>(values + kGroupedValueBytes * i) > 0x80000000u ? 1 : 0;
    }
    return float32_bits(means.positive) | Scale{float32_bits(means.negative)} << 32;
  }
  const char* decode(Scale scale, const std::uint8_t* codes, std::size_t count,
                     std::byte* values) const {
    const auto positive = static_cast<std::uint32_t>(scale);
    const auto negative = static_cast<std::uint32_t>(scale >> 32);
    if (positive >= kFloat32Inf || negative >= kFloat32Inf) return "a mean is out of range";
    for (std::size_t i = 0; i < count; ++i) {
      store_le(values + kGroupedValueBytes * i,
               select_bits(0u - codes[i], negative | 0x80000000u, positive));
    }
    return nullptr;
  }
};

// ---- hadamard (4.8) ----

struct HadamardKernel {
  using Scale = std::uint16_t;  // bfloat16
  static constexpr Scale kRaw = 0x7FC0u;
  static constexpr bool kNoise = true;

  explicit HadamardKernel(const BlockContext& context) : spec(*context.spec) {
    // The signs are the same for all groups, tensors and ranks.
    const std::uint64_t key = noise_key(spec.seed, context.step, 0xFFFFFFFFu, 0, 0);
    for (std::uint32_t i = 0; i < spec.group; ++i) {
      signs[i] = (noise16(key, i) & 0x8000u) << 16;
    }
  }

  unsigned bits() const { return spec.bits; }
  Scale encode(const std::byte* values, std::size_t count, const std::uint16_t* noise,
               std::uint8_t* codes) {
    const std::byte* from = values;
    if (count == spec.group) {
      std::memcpy(rotated.data(), values, kGroupedValueBytes * count);
      flip_signs_simd(rotated.data(), signs.data(), count);
      hadamard_simd(rotated.data(), count);
      from = reinterpret_cast<const std::byte*>(rotated.data());
    }
    // NaN and Inf reach every sum that they are part of, and so does a sum that overflows.
    const std::uint32_t largest = largest_magnitude_simd(from, count);
    if (largest == 0) {
      std::fill_n(codes, count, std::uint8_t{0});
      return 0;
    }
    const std::uint32_t scale = (largest + 0xFFFFu) & 0xFFFF0000u;  // up
    if (!is_level_scale(scale)) return kRaw;
    levels_quantize_stochastic_simd(from, count, float32_from_bits(scale), bits(), noise,
                                    as_integers(codes));
    return static_cast<Scale>(scale >> 16);
  }
  const char* decode(Scale scale, const std::uint8_t* codes, std::size_t count, std::byte* values) {
    const std::uint32_t wide = float32_bits_from_bfloat16(scale);
    if (count != spec.group) return decode_levels(wide, bits(), 1, codes, count, values);
    // Divided first, so that no sum exceeds the scale.
    const char* const wrong = decode_levels(wide, bits(), static_cast<float>(count), codes, count,
                                            reinterpret_cast<std::byte*>(rotated.data()));
    if (wrong != nullptr) return wrong;
    hadamard_simd(rotated.data(), count);
    flip_signs_simd(rotated.data(), signs.data(), count);
    std::memcpy(values, rotated.data(), kGroupedValueBytes * count);
    return nullptr;
  }

  const CodecSpec& spec;
  std::array<std::uint32_t, kMostGroupedGroup> signs;
  std::array<float, kMostGroupedGroup> rotated;
};

}  // namespace

#define GRADWIRE_GROUPED_CODEC(name, make_kernel)                                                  \
  bool encode_##name##_block(const BlockContext& context, std::span<const Piece> pieces,           \
                             CodedScratch&, std::span<std::byte> out, BlockEntry* entry) {         \
    auto kernel = make_kernel;                                                                     \
    return encode_grouped_block<FixedCodeWriter>(kernel, context, pieces, out, entry);             \
  }                                                                                                \
  Status decode_##name##_block(const BlockContext& context, const BlockEntry& entry,               \
                               std::span<const std::byte> bytes, std::span<const PieceOut> pieces, \
                               CodedScratch&) {                                                    \
    auto kernel = make_kernel;                                                                     \
    return decode_grouped_block<FixedCodeReader>(kernel, context, entry, bytes, pieces);           \
  }

GRADWIRE_GROUPED_CODEC(mx, MxKernel(*context.spec))
GRADWIRE_GROUPED_CODEC(levels, LevelsKernel(*context.spec))
GRADWIRE_GROUPED_CODEC(sign, SignKernel())
GRADWIRE_GROUPED_CODEC(hadamard, HadamardKernel(context))

#undef GRADWIRE_GROUPED_CODEC

bool encode_qsgd_block(const BlockContext& context, std::span<const Piece> pieces,
                       CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry) {
  if ((context.spec->variant & kQsgdElias) == 0) {
    return encode_levels_block(context, pieces, scratch, out, entry);
  }
  LevelsKernel kernel(*context.spec);
  return encode_grouped_block<EliasCodeWriter>(kernel, context, pieces, out, entry);
}

Status decode_qsgd_block(const BlockContext& context, const BlockEntry& entry,
                         std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                         CodedScratch& scratch) {
  if ((context.spec->variant & kQsgdElias) == 0) {
    return decode_levels_block(context, entry, bytes, pieces, scratch);
  }
  LevelsKernel kernel(*context.spec);
  return decode_grouped_block<EliasCodeReader>(kernel, context, entry, bytes, pieces);
}

}  // namespace gradwire::internal
