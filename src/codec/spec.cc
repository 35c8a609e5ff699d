// CodecSpec as text, and its ranges.
#include <charconv>
#include <initializer_list>
#include <string>

#include "codec/errors.h"
#include "codec/registry.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"
#include "frame/limits.h"

namespace gradwire {
namespace internal {
namespace {

std::string_view parameter_key(Parameter parameter) noexcept {
  switch (parameter) {
    case Parameter::kStep:
      return "step";
    case Parameter::kBound:
      return "bound";
    case Parameter::kScale:
      return "scale";
    case Parameter::kMantissa:
      return "mantissa";
    case Parameter::kBits:
      return "bits";
    case Parameter::kDtype:
      return "dtype";
    case Parameter::kGroup:
      return "group";
    case Parameter::kRounding:
      return "rounding";
    case Parameter::kFilter:
      return "filter";
    case Parameter::kSeed:
      return "seed";
    case Parameter::kCoder:
      return "coder";
    case Parameter::kSpeed:
      return "speed";
    case Parameter::kBlock:
      return "block";
    case Parameter::kFormat:
      return "format";
    case Parameter::kBucket:
      return "bucket";
    case Parameter::kClip:
      return "clip";
    case Parameter::kFraction:
      return "fraction";
    case Parameter::kNorm:
      return "norm";
    case Parameter::kSample:
      return "sample";
    case Parameter::kCoding:
      return "coding";
  }
  return "";
}

// What the text of a codec calls a field: the first of `names` that it has, else the last.
std::string_view key_name(CodecId codec, std::initializer_list<Parameter> names) noexcept {
  for (const Parameter name : names) {
    for (const Parameter key : find_codec(codec)->keys) {
      if (key == name) return parameter_key(name);
    }
  }
  return parameter_key(*(names.end() - 1));
}

Error out_of_range(std::string_view field, std::string value, std::string_view range) {
  std::string message = std::string(field) + " is " + value + ", must be " + std::string(range);
  return make_error(ErrorCode::kOutOfRange, field, std::move(value), std::move(message));
}

std::string double_text(double value) {
  char text[32];  // the shortest form that reads back as the same number has at most 24
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

struct DTypeKey {
  std::string_view text;
  std::string_view other_text;
  DType dtype;
};
constexpr DTypeKey kDTypeKeys[] = {{"bf16", "bfloat16", DType::kBFloat16},
                                   {"fp16", "float16", DType::kFloat16},
                                   {"fp32", "float32", DType::kFloat32},
                                   {"e4m3", "float8_e4m3", DType::kFloat8E4M3},
                                   {"e5m2", "float8_e5m2", DType::kFloat8E5M2}};

std::string_view dtype_key(DType dtype) noexcept {
  for (const DTypeKey& key : kDTypeKeys) {
    if (key.dtype == dtype) return key.text;
  }
  return "";
}

BoundOptions with_option(BoundOptions options, BoundOptions option, bool on) noexcept {
  const auto bits = static_cast<unsigned>(options);
  const auto bit = static_cast<unsigned>(option);
  return static_cast<BoundOptions>(on ? bits | bit : bits & ~bit);
}

// ---- text to field ----

template <typename T>
Status read_number(Parameter key, std::string_view text, std::string_view kind, T* number) {
  T value{};
  const char* const end = text.data() + text.size();
  // libstdc++ 12 makes short decimals with one division, which rounds as the caller's mode says.
  const FpEnvironment environment;
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end) {
    return out_of_range(parameter_key(key), std::string(text), kind);
  }
  *number = value;
  return {};
}

Status read_small(Parameter key, std::string_view text, std::uint8_t* number) {
  std::uint32_t value = 0;
  GRADWIRE_RETURN_IF_ERROR(read_number(key, text, "a whole number", &value));
  if (value > 255) return out_of_range(parameter_key(key), std::string(text), "at most 255");
  *number = static_cast<std::uint8_t>(value);
  return {};
}

void set_flag(std::uint32_t flag, bool on, std::uint32_t* flags) {
  *flags = on ? *flags | flag : *flags & ~flag;
}

Status read_group(std::string_view text, CodecSpec* spec) {
  if (spec->id == CodecId::kErrorBounded) {
    if (text == "tensor") {
      spec->group = kPerPartGroup;
      spec->options = with_option(spec->options, BoundOptions::kPerPart, true);
      return {};
    }
    spec->options = with_option(spec->options, BoundOptions::kPerPart, false);
    return read_number(Parameter::kGroup, text, "a whole number or tensor", &spec->group);
  }
  return read_number(Parameter::kGroup, text, "a whole number", &spec->group);
}

Status read_scale(std::string_view text, CodecSpec* spec) {
  for (const BoundScale scale :
       {BoundScale::kRms, BoundScale::kRange, BoundScale::kAbsMax, BoundScale::kAbsolute}) {
    if (text != scale_name(scale)) continue;
    spec->scale = scale;
    return {};
  }
  return out_of_range("scale", std::string(text), "rms, range, absmax or absolute");
}

Status read_rounding(std::string_view text, CodecSpec* spec) {
  if (text == "nearest") {
    spec->rounding = Rounding::kNearest;
  } else if (text == "stochastic") {
    spec->rounding = Rounding::kStochastic;
  } else {
    return out_of_range("rounding", std::string(text), "nearest or stochastic");
  }
  return {};
}

// `tans` and `huffman` are what the parameter calls the two coders.
Status read_coder(Parameter key, std::string_view text, std::string_view tans,
                  std::string_view huffman, CodecSpec* spec) {
  if (text != tans && text != huffman) {
    return out_of_range(parameter_key(key), std::string(text),
                        std::string(tans) + " or " + std::string(huffman));
  }
  spec->coder = text == huffman ? Coder::kHuffman : Coder::kTans;
  return {};
}

Status read_filter(std::string_view text, CodecSpec* spec) {
  if (text != "on" && text != "off") return out_of_range("filter", std::string(text), "on or off");
  spec->options = with_option(spec->options, BoundOptions::kFilter, text == "on");
  return {};
}

Status set_parameter(Parameter key, std::string_view text, CodecSpec* spec) {
  switch (key) {
    case Parameter::kStep:
    case Parameter::kClip:
    case Parameter::kFraction:
      spec->mantissa = 0;
      return read_number(key, text, "a number", &spec->step);
    case Parameter::kBound:
      return read_number(key, text, "a number", &spec->bound);
    case Parameter::kScale:
      return read_scale(text, spec);
    case Parameter::kMantissa:
      spec->step = 0;
      return read_small(key, text, &spec->mantissa);
    case Parameter::kBits:
      return read_small(key, text, &spec->bits);
    case Parameter::kGroup:
      return read_group(text, spec);
    case Parameter::kBucket:
      return read_number(key, text, "a whole number", &spec->group);
    case Parameter::kSample:
      return read_number(key, text, "a whole number", &spec->variant);
    case Parameter::kNorm:
      if (text != "l2" && text != "max") {
        return out_of_range("norm", std::string(text), "l2 or max");
      }
      set_flag(kQsgdMax, text == "max", &spec->variant);
      return {};
    case Parameter::kCoding:
      if (text != "fixed" && text != "elias") {
        return out_of_range("coding", std::string(text), "fixed or elias");
      }
      set_flag(kQsgdElias, text == "elias", &spec->variant);
      return {};
    case Parameter::kSeed:
      return read_number(key, text, "a whole number below 2^64", &spec->seed);
    case Parameter::kBlock:
      return read_number(key, text, "a whole number", &spec->block_values);
    case Parameter::kDtype:
    case Parameter::kFormat:
      for (const DTypeKey& named : kDTypeKeys) {
        if (text == named.text || text == named.other_text) {
          spec->cast_dtype = named.dtype;
          return {};
        }
      }
      return out_of_range(parameter_key(key), std::string(text),
                          dtypes_text(find_limits(spec->id)->cast_dtypes));
    case Parameter::kRounding:
      return read_rounding(text, spec);
    case Parameter::kFilter:
      return read_filter(text, spec);
    case Parameter::kCoder:
      return read_coder(key, text, "tans", "huffman", spec);
    case Parameter::kSpeed:
      return read_coder(key, text, "balanced", "fast", spec);
  }
  return {};
}

// ---- field to text ----

std::string parameter_text(Parameter key, const CodecSpec& spec) {
  switch (key) {
    case Parameter::kStep:
    case Parameter::kClip:
    case Parameter::kFraction:
      return double_text(spec.step);
    case Parameter::kBound:
      return double_text(spec.bound);
    case Parameter::kScale:
      return std::string(scale_name(spec.scale));
    case Parameter::kMantissa:
      return std::to_string(spec.mantissa);
    case Parameter::kBits:
      return std::to_string(spec.bits);
    case Parameter::kDtype:
    case Parameter::kFormat:
      return std::string(dtype_key(spec.cast_dtype));
    case Parameter::kGroup:
    case Parameter::kBucket:
      if (has_option(spec.options, BoundOptions::kPerPart)) return "tensor";
      return std::to_string(spec.group);
    case Parameter::kRounding:
      return spec.rounding == Rounding::kNearest ? "nearest" : "stochastic";
    case Parameter::kSample:
      return std::to_string(spec.variant);
    case Parameter::kNorm:
      return (spec.variant & kQsgdMax) != 0 ? "max" : "l2";
    case Parameter::kCoding:
      return (spec.variant & kQsgdElias) != 0 ? "elias" : "fixed";
    case Parameter::kFilter:
      return has_option(spec.options, BoundOptions::kFilter) ? "on" : "off";
    case Parameter::kSeed:
      return std::to_string(spec.seed);
    case Parameter::kCoder:
      return std::string(coder_name(spec.coder));
    case Parameter::kSpeed:
      return spec.coder == Coder::kHuffman ? "fast" : "balanced";
    case Parameter::kBlock:
      return std::to_string(spec.block_values);
  }
  return "";
}

// Whether the canonical text names the parameter: where it differs from the default, and what a
// reader should not have to know by heart.
bool is_shown(Parameter key, const CodecSpec& spec, const CodecSpec& defaults) {
  if (key == Parameter::kSpeed) return false;  // another word for the coder
  if (key == Parameter::kStep && spec.mantissa != 0) return false;
  if (key == Parameter::kBits || key == Parameter::kBound || key == Parameter::kDtype ||
      key == Parameter::kFormat || key == Parameter::kFraction) {
    return true;
  }
  return parameter_text(key, spec) != parameter_text(key, defaults);
}

// ---- finding codec and key ----

Result<CodecSpec> find_spec(std::string_view name) {
  if (const CodecEntry* entry = find_codec(name)) return entry->defaults;
  std::string names;
  for (const CodecEntry& entry : codec_entries()) {
    names += (names.empty() ? "" : ", ") + std::string(codec_name(entry.defaults.id));
  }
  for (const CodecAlias& alias : codec_aliases()) {
    if (alias.name == name) return alias.spec;
    names += ", " + std::string(alias.name);
  }
  return make_error(ErrorCode::kUnknownCodec, "codec", std::string(name),
                    "unknown codec \"" + std::string(name) + "\"; codecs are " + names);
}

Result<Parameter> find_parameter(const CodecSpec& spec, std::string_view key) {
  const std::string codec(codec_name(spec.id));
  std::string keys;
  for (const Parameter parameter : find_codec(spec.id)->keys) {
    if (parameter_key(parameter) == key) return parameter;
    keys += (keys.empty() ? "" : ", ") + std::string(parameter_key(parameter));
  }
  return make_error(
      ErrorCode::kUnknownParameter, std::string(key), std::string(key),
      "codec " + codec + " has no parameter \"" + std::string(key) + "\"; it takes " + keys);
}

// One `key=value`. `seen`: bit set of the parameters before it.
Status parse_item(std::string_view item, std::uint32_t* seen, CodecSpec* spec) {
  const std::size_t equals = item.find('=');
  GRADWIRE_ASSIGN_OR_RETURN(const Parameter key, find_parameter(*spec, item.substr(0, equals)));
  const std::string name(parameter_key(key));
  if (equals == std::string_view::npos) {
    return make_error(ErrorCode::kInvalidArgument, name, "",
                      name + " needs a value: " + name + "=...");
  }
  const auto bit = [](Parameter parameter) { return 1u << static_cast<unsigned>(parameter); };
  if ((*seen & bit(key)) != 0) {
    return make_error(ErrorCode::kInvalidArgument, name, "", name + " is given twice");
  }
  *seen |= bit(key);
  const auto seen_both = [&](Parameter a, Parameter b) {
    return (*seen & (bit(a) | bit(b))) == (bit(a) | bit(b));
  };
  if (seen_both(Parameter::kStep, Parameter::kMantissa)) {
    return make_error(ErrorCode::kInvalidArgument, name, "",
                      "step and mantissa exclude each other; give one");
  }
  if (seen_both(Parameter::kCoder, Parameter::kSpeed)) {
    return make_error(ErrorCode::kInvalidArgument, name, "",
                      "speed chooses the coder; give speed or coder, not both");
  }
  GRADWIRE_RETURN_IF_ERROR(set_parameter(key, item.substr(equals + 1), spec));
  // mantissa=0 would silently mean the step form with step 0.
  if (key == Parameter::kMantissa && spec->mantissa == 0) {
    return out_of_range("mantissa", "0", range_text(kMantissaRange));
  }
  return {};
}

// ---- ranges ----

Status check_step(const CodecSpec& spec, const CodecLimits& limits) {
  const bool mantissa_form = spec.id == CodecId::kNearLossless && spec.mantissa != 0;
  if (mantissa_form ? !kMantissaRange.contains(spec.mantissa) : spec.mantissa != 0) {
    return out_of_range("mantissa", std::to_string(spec.mantissa),
                        mantissa_form ? range_text(kMantissaRange) : "0 for this codec");
  }
  const bool takes_step = !mantissa_form && spec.id != CodecId::kErrorBounded;
  const RealRange range = takes_step ? limits.quantizer_step : RealRange{};
  if (range.contains(spec.step)) return {};
  return out_of_range(key_name(spec.id, {Parameter::kClip, Parameter::kFraction, Parameter::kStep}),
                      double_text(spec.step),
                      mantissa_form ? "0 if mantissa is given" : range_text(range));
}

Status check_bound(const CodecSpec& spec) {
  const bool bounded = spec.id == CodecId::kErrorBounded;
  const auto scale = static_cast<std::uint32_t>(spec.scale);
  const auto options = static_cast<std::uint32_t>(spec.options);
  if (bounded ? !is_bound_scale(spec.scale) : scale != 0) {
    return out_of_range("scale", std::to_string(scale),
                        bounded ? "rms, range, absmax or absolute" : "0 for this codec");
  }
  if (options > (bounded ? kAllBoundOptions : 0)) {
    return out_of_range("options", std::to_string(options),
                        bounded ? "at most 3" : "0 for this codec");
  }
  if (has_option(spec.options, BoundOptions::kPerPart) && spec.group != kPerPartGroup) {
    return out_of_range("group", std::to_string(spec.group), "4096 for one scale for each part");
  }
  const RealRange range = bounded ? bound_range(spec.scale, spec.rounding) : RealRange{};
  if (range.contains(spec.bound)) return {};
  return out_of_range(
      "bound", double_text(spec.bound),
      range_text(range) + (bounded ? " for scale " + std::string(scale_name(spec.scale)) : ""));
}

Status check_rounding(const CodecSpec& spec, const CodecLimits& limits) {
  const std::uint32_t roundings = roundings_of(limits, spec.mantissa);
  const auto rounding = static_cast<std::uint32_t>(spec.rounding);
  if (!has_number(roundings, rounding)) {
    std::string range = roundings_text(roundings);
    if (spec.id == CodecId::kNearLossless) {
      range += " with a step; error_bounded rounds to steps with noise";
    }
    return out_of_range("rounding", std::to_string(rounding), range);
  }
  const bool is_seeded = has_number(roundings, static_cast<std::uint32_t>(Rounding::kStochastic));
  if (is_seeded || spec.seed == 0) return {};
  return out_of_range("seed", std::to_string(spec.seed), "0 for this codec");
}

}  // namespace

Status check_spec(const CodecSpec& spec) {
  const CodecLimits* const limits = find_limits(spec.id);
  if (limits == nullptr) {
    const std::string number = std::to_string(static_cast<unsigned>(spec.id));
    return make_error(ErrorCode::kUnknownCodec, "codec", number, "no codec has number " + number);
  }
  if (!limits->group.contains(spec.group)) {
    return out_of_range(key_name(spec.id, {Parameter::kBucket, Parameter::kGroup}),
                        std::to_string(spec.group), range_text(limits->group));
  }
  GRADWIRE_RETURN_IF_ERROR(check_step(spec, *limits));
  if (!(limits->bits == 0 ? spec.bits == 0 : has_number(limits->bits, spec.bits))) {
    return out_of_range("bits", std::to_string(spec.bits), bits_text(limits->bits));
  }
  const auto dtype = static_cast<std::uint32_t>(spec.cast_dtype);
  if (!(limits->cast_dtypes == 0 ? dtype == 0 : has_number(limits->cast_dtypes, dtype))) {
    return out_of_range(key_name(spec.id, {Parameter::kFormat, Parameter::kDtype}),
                        dtype == 0 ? "0" : std::string(dtype_name(spec.cast_dtype)),
                        dtypes_text(limits->cast_dtypes));
  }
  if (!limits->variant.contains(spec.variant)) {
    return out_of_range(key_name(spec.id, {Parameter::kNorm, Parameter::kSample}),
                        std::to_string(spec.variant), range_text(limits->variant));
  }
  GRADWIRE_RETURN_IF_ERROR(check_rounding(spec, *limits));
  GRADWIRE_RETURN_IF_ERROR(check_bound(spec));
  if (!is_coder(spec.id, spec.coder)) {
    return out_of_range("coder", std::to_string(static_cast<unsigned>(spec.coder)),
                        is_coded(spec.id) ? "tans or huffman" : "0 for this codec");
  }
  if (!kBlockValuesRange.contains(spec.block_values)) {
    return out_of_range("block", std::to_string(spec.block_values), range_text(kBlockValuesRange));
  }
  return {};
}

}  // namespace internal

namespace internal {
namespace {

Result<CodecSpec> parse_spec(std::string_view text) {
  const std::size_t colon = text.find(':');
  GRADWIRE_ASSIGN_OR_RETURN(CodecSpec spec, find_spec(text.substr(0, colon)));
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  std::uint32_t seen = 0;
  // A colon or comma announces an item: "none:" and "none:block=4096," are errors.
  for (bool more = colon != std::string_view::npos; more;) {
    const std::size_t comma = rest.find(',');
    GRADWIRE_RETURN_IF_ERROR(parse_item(rest.substr(0, comma), &seen, &spec));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  GRADWIRE_RETURN_IF_ERROR(check_spec(spec));
  return spec;
}

Error refused_dtype(const CodecSpec& spec, DType dtype) {
  const std::string codec(codec_name(spec.id));
  std::string names;
  for (const DType taken : all_dtypes()) {
    if (!codec_takes(spec.id, taken)) continue;
    names += (names.empty() ? "" : ", ") + std::string(dtype_name(taken));
  }
  const std::string name(dtype_name(dtype));
  return make_error(ErrorCode::kUnsupportedDType, "dtype", name,
                    "codec " + codec + " does not take " + name + "; it takes " + names);
}

}  // namespace
}  // namespace internal

Result<CodecSpec> CodecSpec::parse(std::string_view text) {
  return internal::without_bad_alloc([&] { return internal::parse_spec(text); });
}

std::string CodecSpec::to_string() const {
  std::string text(internal::codec_name(id));
  const internal::CodecEntry* entry = internal::find_codec(id);
  if (entry == nullptr) return text;
  char separator = ':';
  for (const internal::Parameter key : entry->keys) {
    if (!internal::is_shown(key, *this, entry->defaults)) continue;
    text += separator;
    text += internal::parameter_key(key);
    text += '=';
    text += internal::parameter_text(key, *this);
    separator = ',';
  }
  return text;
}

Status check_dtype(const CodecSpec& spec, DType dtype) {
  if (internal::codec_takes(spec.id, dtype)) return {};
  return internal::without_bad_alloc(
      [&]() -> Status { return internal::refused_dtype(spec, dtype); });
}

}  // namespace gradwire
