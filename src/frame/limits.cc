#include "frame/limits.h"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t set_of(std::initializer_list<unsigned> numbers) {
  std::uint32_t set = 0;
  for (const unsigned number : numbers) set |= 1u << number;
  return set;
}
constexpr std::uint32_t set_of(std::initializer_list<DType> dtypes) {
  std::uint32_t set = 0;
  for (const DType dtype : dtypes) set |= 1u << static_cast<unsigned>(dtype);
  return set;
}

constexpr std::uint32_t kFloats =
    set_of({DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16});
constexpr std::uint32_t kEveryType =
    kFloats | set_of({DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                      DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kBool,
                      DType::kFloat8E4M3, DType::kFloat8E5M2});
constexpr std::uint32_t kFloat32 = set_of({DType::kFloat32});
constexpr std::uint32_t kFloat8s = set_of({DType::kFloat8E4M3, DType::kFloat8E5M2});
constexpr std::uint32_t kHalves = set_of({DType::kFloat16, DType::kBFloat16});

constexpr std::uint32_t kStochastic = 1u << static_cast<unsigned>(Rounding::kStochastic);
constexpr std::uint32_t kAnyRounding = kStochastic | CodecLimits{}.roundings;

constexpr Range kCodedGroups{64, 4096, 64};
constexpr Range kFixedGroups{8, 4096, 8};
constexpr Range kMxGroups{32, 32, 1};
constexpr RealRange kFractions{0x1p-20, 1, false};
constexpr Range kRotatedGroups{16, 4096, Range::kPowerOfTwo};

// In the order of their numbers.
constexpr std::array kLimits = {
    CodecLimits{.id = CodecId::kNone, .name = "none", .dtypes = kEveryType},
    CodecLimits{.id = CodecId::kCast,
                .name = "cast",
                .dtypes = set_of({DType::kFloat32, DType::kFloat64}),
                .kind = BlockKind::kFixed,
                .cast_dtypes = kHalves},
    CodecLimits{.id = CodecId::kBlock,
                .name = "block",
                .dtypes = kFloats,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kFixedGroups,
                .bits = set_of({4u, 6u, 8u}),
                .roundings = kAnyRounding},
    CodecLimits{.id = CodecId::kLossless,
                .name = "lossless",
                .dtypes = kFloats,
                .kind = BlockKind::kCoded,
                .counts_outliers = true,
                .group = kCodedGroups},
    CodecLimits{.id = CodecId::kNearLossless,
                .name = "near_lossless",
                .dtypes = kFloats,
                .kind = BlockKind::kCoded,
                .counts_outliers = true,
                .group = kCodedGroups,
                .roundings = kAnyRounding,
                .quantizer_step = {0x1p-8, 8, false}},
    CodecLimits{.id = CodecId::kErrorBounded,
                .name = "error_bounded",
                .dtypes = kFloats,
                .kind = BlockKind::kCoded,
                .counts_outliers = true,
                .group = kCodedGroups,
                .roundings = kAnyRounding},
    CodecLimits{.id = CodecId::kNatural,
                .name = "natural",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .roundings = kStochastic},
    CodecLimits{.id = CodecId::kMxfp8,
                .name = "mxfp8",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kMxGroups,
                .cast_dtypes = kFloat8s},
    CodecLimits{.id = CodecId::kMxfp4,
                .name = "mxfp4",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kMxGroups},
    CodecLimits{.id = CodecId::kQsgd,
                .name = "qsgd",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kFixedGroups,
                .bits = set_of({2u, 3u, 4u, 5u, 6u, 7u, 8u}),
                .roundings = kStochastic,
                .variant = {0, kQsgdMax | kQsgdElias, 1}},
    CodecLimits{.id = CodecId::kTernGrad,
                .name = "terngrad",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kFixedGroups,
                .bits = set_of({2u}),
                .roundings = kStochastic,
                .quantizer_step = {1, 8, true}},
    CodecLimits{.id = CodecId::kSign,
                .name = "sign",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kFixedGroups},
    CodecLimits{.id = CodecId::kTopK,
                .name = "top_k",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .cast_dtypes = set_of({DType::kFloat32, DType::kBFloat16}),
                .quantizer_step = kFractions},
    CodecLimits{.id = CodecId::kHadamard,
                .name = "hadamard",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .counts_outliers = true,
                .group = kRotatedGroups,
                .bits = set_of({4u, 6u, 8u}),
                .roundings = kStochastic},
    CodecLimits{.id = CodecId::kCocktail,
                .name = "cocktail",
                .dtypes = kFloat32,
                .kind = BlockKind::kFixed,
                .group = kFixedGroups,
                .bits = set_of({4u, 6u, 8u}),
                .roundings = kAnyRounding,
                .variant = {1, 4096, 1},
                .quantizer_step = kFractions},
};

// The names of the numbers that a set has: "a", "a or b", "a, b or c".
template <typename NameOf>
std::string set_text(std::uint32_t set, NameOf name_of) {
  std::string text;
  for (std::uint32_t number = 0; number < 32; ++number) {
    if (!has_number(set, number)) continue;
    const bool last = (set >> number) == 1;
    if (!text.empty()) text += last ? " or " : ", ";
    text += name_of(number);
  }
  return text.empty() ? "0 for this codec" : text;
}

std::string number_text(double value) {
  char text[32];  // the shortest form that reads back as the same number has at most 24
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

}  // namespace

std::span<const CodecLimits> all_codec_limits() noexcept { return kLimits; }

const CodecLimits* find_limits(CodecId codec) noexcept {
  for (const CodecLimits& limits : kLimits) {
    if (limits.id == codec) return &limits;
  }
  return nullptr;
}

bool RealRange::contains(double value) const noexcept {
  if (value == 0) return (is_none() || or_zero) && !std::signbit(value);
  return value >= least && value <= most;  // written so that NaN fails
}

std::string range_text(const Range& range) {
  if (range.most == 0) return "0 for this codec";
  if (range.least == range.most) return std::to_string(range.least) + " for this codec";
  std::string text = "from " + std::to_string(range.least) + " to " + std::to_string(range.most);
  if (range.multiple == Range::kPowerOfTwo) return "a power of two " + text;
  if (range.multiple > 1) text += ", a multiple of " + std::to_string(range.multiple);
  return text;
}

std::string range_text(const RealRange& range) {
  if (range.is_none()) return "0 for this codec";
  const std::string text = "from " + number_text(range.least) + " to " + number_text(range.most);
  return range.or_zero ? "0 or " + text : text;
}

std::string bits_text(std::uint32_t set) {
  return set_text(set, [](std::uint32_t number) { return std::to_string(number); });
}

std::string dtypes_text(std::uint32_t set) {
  return set_text(set, [](std::uint32_t number) {
    return std::string(dtype_name(static_cast<DType>(number)));
  });
}

std::string roundings_text(std::uint32_t set) {
  return set_text(set, [](std::uint32_t number) {
    return std::string(number == 0 ? "nearest" : "stochastic");
  });
}

std::string_view codec_name(CodecId codec) noexcept {
  const CodecLimits* limits = find_limits(codec);
  return limits == nullptr ? "unknown" : limits->name;
}

std::span<const DType> all_dtypes() noexcept {
  static constexpr std::array kAll = {
      DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,   DType::kUInt8,
      DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,      DType::kUInt16,
      DType::kUInt32,  DType::kUInt64,  DType::kBool,    DType::kFloat8E4M3, DType::kFloat8E5M2};
  return kAll;
}

bool codec_takes(CodecId codec, DType dtype) noexcept {
  const CodecLimits* limits = find_limits(codec);
  return limits != nullptr && has_number(limits->dtypes, static_cast<std::uint32_t>(dtype));
}

}  // namespace gradwire::internal
