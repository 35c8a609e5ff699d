#include "codec/registry.h"

#include <array>
#include <vector>

#include "codec/coded_block.h"
#include "codec/fixed_block.h"
#include "codec/registry_baselines.h"
#include "core/simd_target.h"
#include "frame/limits.h"

namespace gradwire {
namespace internal {
namespace {

constexpr CodecSpec cast_spec() {
  CodecSpec spec;
  spec.id = CodecId::kCast;
  spec.cast_dtype = DType::kBFloat16;
  return spec;
}

constexpr CodecSpec block_spec(std::uint8_t bits, std::uint32_t group) {
  CodecSpec spec;
  spec.id = CodecId::kBlock;
  spec.bits = bits;
  spec.group = group;
  spec.rounding = Rounding::kStochastic;
  return spec;
}

constexpr CodecSpec lossless_spec() {
  CodecSpec spec;
  spec.id = CodecId::kLossless;
  spec.coder = Coder::kTans;
  spec.group = 256;
  return spec;
}

constexpr CodecSpec near_lossless_spec() {
  CodecSpec spec;
  spec.id = CodecId::kNearLossless;
  spec.coder = Coder::kTans;
  spec.group = 256;
  spec.step = 0.00575;  // the L2 error of a cast to bfloat16
  return spec;
}

// Lane states and table of a block cost 1.5 % at 1 bit per value and 262144 values.
constexpr std::uint32_t kCoarseBlockValues = 1048576;

constexpr CodecSpec error_bounded_spec(double bound) {
  CodecSpec spec;
  spec.id = CodecId::kErrorBounded;
  spec.coder = Coder::kTans;
  spec.block_values = kCoarseBlockValues;
  spec.group = 256;
  spec.bound = bound;
  spec.scale = BoundScale::kRms;
  spec.rounding = Rounding::kStochastic;
  return spec;
}

// COMPSO's compressor: filter and stochastic rounding at 4e-3 of each layer's range.
constexpr CodecSpec compso_spec() {
  CodecSpec spec = error_bounded_spec(4e-3);
  spec.scale = BoundScale::kRange;
  spec.group = kPerPartGroup;
  spec.options = static_cast<BoundOptions>(kAllBoundOptions);
  return spec;
}

constexpr Parameter kNoneKeys[] = {Parameter::kBlock};
constexpr std::string_view kNoneExamples[] = {"none"};

constexpr Parameter kCastKeys[] = {Parameter::kDtype, Parameter::kBlock};
constexpr std::string_view kCastExamples[] = {"cast:dtype=bf16", "cast:dtype=fp16"};

constexpr Parameter kBlockKeys[] = {Parameter::kBits, Parameter::kGroup, Parameter::kRounding,
                                    Parameter::kSeed, Parameter::kBlock};
constexpr std::string_view kBlockExamples[] = {"int8", "int4", "block:bits=6,group=64",
                                               "block:bits=8,rounding=nearest"};

constexpr Parameter kLosslessKeys[] = {Parameter::kGroup, Parameter::kCoder, Parameter::kSpeed,
                                       Parameter::kBlock};
constexpr std::string_view kLosslessExamples[] = {"lossless", "lossless:coder=huffman"};

constexpr Parameter kNearLosslessKeys[] = {
    Parameter::kStep, Parameter::kMantissa, Parameter::kGroup, Parameter::kRounding,
    Parameter::kSeed, Parameter::kCoder,    Parameter::kSpeed, Parameter::kBlock};
constexpr std::string_view kNearLosslessExamples[] = {
    "near_lossless",
    "near_lossless:step=1,group=64",
    "near_lossless:mantissa=6",
    "near_lossless:mantissa=1,rounding=stochastic",
    "near_lossless:coder=huffman",
    "near_lossless:mantissa=6,coder=huffman"};

constexpr Parameter kErrorBoundedKeys[] = {
    Parameter::kBound,    Parameter::kScale,  Parameter::kGroup,
    Parameter::kRounding, Parameter::kFilter, Parameter::kSeed,
    Parameter::kCoder,    Parameter::kSpeed,  Parameter::kBlock};
constexpr std::string_view kErrorBoundedExamples[] = {
    "fine",
    "unbiased",
    "coarse",
    "compso",
    "error_bounded:bound=0.5,rounding=nearest",
    "error_bounded:bound=0.01,scale=absmax,group=64,filter=on",
    "error_bounded:bound=0.001,scale=absolute",
    "error_bounded:bound=0.03125,coder=huffman"};

constexpr CodecAlias kAliases[] = {
    {"int8", block_spec(8, 64)},           {"int4", block_spec(4, 128)},
    {"fine", error_bounded_spec(0.03125)}, {"unbiased", error_bounded_spec(0.125)},
    {"coarse", error_bounded_spec(1)},     {"compso", compso_spec()}};

constexpr std::array kOwnEntries = {
    CodecEntry{
        .defaults = CodecSpec{},
        .summary = "values as they are",
        .parameters = "block=N",
        .bound = "exact",
        .keys = kNoneKeys,
        .examples = kNoneExamples,
    },
    CodecEntry{
        .defaults = cast_spec(),
        .summary = "values rounded to a 16-bit type",
        .parameters = "dtype=bf16|fp16, block=N",
        .bound = "half a unit in the last place of the 16-bit type; beyond its range Inf",
        .keys = kCastKeys,
        .examples = kCastExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_cast_block,
        .decode_block = decode_cast_block,
    },
    CodecEntry{
        .defaults = block_spec(8, 64),
        .summary = "small integers of fixed width relative to the largest magnitude of a group",
        .parameters = "bits=4|6|8, group=N, rounding=nearest|stochastic, seed=N, block=N",
        .bound = "|x - x'| <= step (half for nearest) x (1 + 2^-10), "
                 "step = largest magnitude of the group / (2^(bits-1) - 1)",
        .keys = kBlockKeys,
        .examples = kBlockExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_int_block,
        .decode_block = decode_int_block,
    },
    CodecEntry{
        .defaults = lossless_spec(),
        .summary = "exponents entropy-coded relative to their group, mantissas as they are",
        .parameters = "group=N, coder=tans|huffman or speed=balanced|fast, block=N",
        .bound = "exact",
        .keys = kLosslessKeys,
        .examples = kLosslessExamples,
        .kind = BlockKind::kCoded,
        .encode_block = encode_coded_block,
        .decode_block = decode_coded_block,
    },
    CodecEntry{
        .defaults = near_lossless_spec(),
        .summary = "values rounded to a step relative to their group's RMS, or to a number of "
                   "mantissa bits, entropy-coded",
        .parameters =
            "step=X | mantissa=M, group=N, rounding=nearest|stochastic (of mantissas), seed=N, "
            "coder=tans|huffman or speed=balanced|fast, block=N",
        .bound = "step: |x - x'| <= step / 2, step = 2^floor(log2(X x RMS of the group)); "
                 "mantissa: |x - x'| <= 2^-(M+1) |x|, stochastic: < 2^-M |x|",
        .keys = kNearLosslessKeys,
        .examples = kNearLosslessExamples,
        .kind = BlockKind::kCoded,
        .encode_block = encode_coded_block,
        .decode_block = decode_coded_block,
    },
    CodecEntry{
        .defaults = error_bounded_spec(0.125),
        .summary = "values rounded to a step within a bound relative to their group's or tensor's "
                   "RMS, range or largest magnitude, or to nothing; entropy-coded",
        .parameters = "bound=B, scale=rms|range|absmax|absolute, group=N|tensor, "
                      "rounding=stochastic|nearest, filter=off|on, seed=N, "
                      "coder=tans|huffman or speed=balanced|fast, block=N",
        .bound =
            "stochastic: |x - x'| < step, step = 2^floor(log2(B x scale)), unbiased but for the "
            "filter; nearest: |x - x'| <= step / 2, step = 2^floor(log2(2 B x scale))",
        .keys = kErrorBoundedKeys,
        .examples = kErrorBoundedExamples,
        .kind = BlockKind::kCoded,
        .encode_block = encode_coded_block,
        .decode_block = decode_coded_block,
    },
};

constexpr std::size_t kOwn = kOwnEntries.size();

constexpr auto make_entries() noexcept {
  std::array<CodecEntry, kOwn + kBaselineEntries.size()> entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i] = i < kOwn ? kOwnEntries[i] : kBaselineEntries[i - kOwn];
  }
  return entries;
}

constexpr auto kEntries = make_entries();

std::vector<CodecDescription> make_descriptions() {
  std::vector<CodecDescription> descriptions;
  for (const CodecEntry& entry : kEntries) {
    const CodecId id = entry.defaults.id;
    CodecDescription description{
        id, codec_name(id), entry.summary, entry.parameters, entry.bound, {}, {}};
    for (const DType dtype : all_dtypes()) {
      if (codec_takes(id, dtype)) description.dtypes.push_back(dtype);
    }
    description.examples.assign(entry.examples.begin(), entry.examples.end());
    descriptions.push_back(std::move(description));
  }
  return descriptions;
}

}  // namespace

std::span<const CodecEntry> codec_entries() noexcept { return kEntries; }

const CodecEntry* find_codec(CodecId id) noexcept {
  for (const CodecEntry& entry : kEntries) {
    if (entry.defaults.id == id) return &entry;
  }
  return nullptr;
}

const CodecEntry* find_codec(std::string_view name) noexcept {
  for (const CodecEntry& entry : kEntries) {
    if (codec_name(entry.defaults.id) == name) return &entry;
  }
  return nullptr;
}

std::span<const CodecAlias> codec_aliases() noexcept { return kAliases; }

}  // namespace internal

std::string_view simd_target() noexcept { return internal::simd_target_name(); }

std::span<const CodecDescription> codecs() {
  static const std::vector<CodecDescription> kDescriptions = internal::make_descriptions();
  return kDescriptions;
}

}  // namespace gradwire
