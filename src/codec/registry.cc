#include "codec/registry.h"

#include <array>
#include <vector>

#include "codec/fixed_block.h"
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

constexpr Parameter kNoneKeys[] = {Parameter::kBlock};
constexpr std::string_view kNoneExamples[] = {"none"};

constexpr Parameter kCastKeys[] = {Parameter::kDtype, Parameter::kBlock};
constexpr std::string_view kCastExamples[] = {"cast:dtype=bf16", "cast:dtype=fp16"};

constexpr std::array kEntries = {
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
};

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

std::span<const CodecAlias> codec_aliases() noexcept { return {}; }

}  // namespace internal

std::span<const CodecDescription> codecs() {
  static const std::vector<CodecDescription> kDescriptions = internal::make_descriptions();
  return kDescriptions;
}

}  // namespace gradwire
