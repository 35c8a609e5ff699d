#include "tensor_file.h"

#include <array>
#include <set>
#include <utility>

#include "failure.h"

namespace gradwire::cli {
namespace {

constexpr std::array kAllDTypes = {
    DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,   DType::kUInt8,
    DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,      DType::kUInt16,
    DType::kUInt32,  DType::kUInt64,  DType::kBool,    DType::kFloat8E4M3, DType::kFloat8E5M2,
};

Result<TensorFile> read_raw(InputFile input, DType dtype) {
  const std::size_t size = dtype_size(dtype);
  const std::span<const std::byte> bytes = input.bytes();
  if (bytes.size() % size != 0) {
    return bad_data(std::to_string(bytes.size()) + " bytes are no whole number of " +
                    std::string(dtype_name(dtype)) + " values");
  }
  Tensor tensor{
      .name = "data", .type = "", .dtype = dtype, .shape = {}, .count = 0, .bytes = bytes};
  tensor.count = bytes.size() / size;
  tensor.shape = {tensor.count};
  TensorFile file{.input = std::move(input), .format = "raw", .tensors = {}};
  file.tensors.push_back(std::move(tensor));
  return file;
}

}  // namespace

std::optional<DType> dtype_by_name(std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (const DType dtype : kAllDTypes) {
    if (!names.empty()) names += ", ";
    names += dtype_name(dtype);
  }
  return names;
}

std::optional<Json> parse_json(std::string_view text, std::string* repeated) {
  constexpr int kMostDepth = 64;
  bool too_deep = false;
  std::set<std::string> names;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth >= kMostDepth && (event == Event::object_start || event == Event::array_start)) {
      too_deep = true;
      return false;
    }
    if (repeated != nullptr && event == Event::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      *repeated = parsed.get<std::string>();
    }
    return true;
  };
  Json json = Json::parse(text, callback, /*allow_exceptions=*/false);
  if (too_deep || json.is_discarded()) return std::nullopt;
  return json;
}

std::optional<std::uint64_t> shape_count(std::span<const std::uint64_t> shape) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  // A zero anywhere makes the product zero, whatever the others are.
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
  }
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (extent > kLimit / count) return std::nullopt;
    count *= extent;
  }
  return count;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<TensorFile> read_tensor_file(const std::string& path, const std::string& dtype) {
  std::optional<DType> given;
  if (!dtype.empty()) {
    given = dtype_by_name(dtype);
    if (!given) return bad_usage("unknown dtype " + dtype + "; one of: " + dtype_names());
  }
  const bool safetensors = has_suffix(path, ".safetensors");
  const bool npy = has_suffix(path, ".npy");
  if (!safetensors && !npy && !given) {
    return bad_usage("neither .safetensors nor .npy: say the type of its raw values with --dtype");
  }
  if (safetensors && given) return bad_usage("--dtype does not go with .safetensors");
  Result<InputFile> input = InputFile::open(path);
  if (!input.ok()) return input.error();
  if (safetensors) return read_safetensors(std::move(*input));
  if (npy) return read_npy(std::move(*input), given);
  return read_raw(std::move(*input), *given);
}

}  // namespace gradwire::cli
