// safetensors: u64 header length, JSON header, data. https://github.com/huggingface/safetensors
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "failure.h"
#include "tensor_file.h"

namespace gradwire::cli {
namespace {

struct TypeName {
  std::string_view name;
  DType dtype;
};

// Types without a number in the wire format travel as integers of their size.
constexpr std::array kTypes = {
    TypeName{"F32", DType::kFloat32},        TypeName{"F64", DType::kFloat64},
    TypeName{"F16", DType::kFloat16},        TypeName{"BF16", DType::kBFloat16},
    TypeName{"U8", DType::kUInt8},           TypeName{"I8", DType::kInt8},
    TypeName{"I16", DType::kInt16},          TypeName{"I32", DType::kInt32},
    TypeName{"I64", DType::kInt64},          TypeName{"U16", DType::kUInt16},
    TypeName{"U32", DType::kUInt32},         TypeName{"U64", DType::kUInt64},
    TypeName{"BOOL", DType::kBool},          TypeName{"F8_E4M3", DType::kFloat8E4M3},
    TypeName{"F8_E5M2", DType::kFloat8E5M2}, TypeName{"F8_E8M0", DType::kUInt8},
    TypeName{"F8_E4M3FNUZ", DType::kUInt8},  TypeName{"F8_E5M2FNUZ", DType::kUInt8},
    TypeName{"C64", DType::kUInt64},
};

constexpr std::uint64_t kHeaderLimit = 100'000'000;  // as the safetensors library

std::optional<DType> type_by_name(std::string_view name) {
  for (const TypeName& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}

// Numbers that do not fit u64 are parsed as floating point and refused here.
std::optional<std::vector<std::uint64_t>> integers(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::uint64_t> values;
  for (const Json& item : list) {
    if (!item.is_number_unsigned()) return std::nullopt;
    values.push_back(item.get<std::uint64_t>());
  }
  return values;
}

Result<Tensor> parse_entry(const std::string& name, const Json& entry, std::uint64_t data_bytes,
                           std::uint64_t& offset) {
  const std::string place = "tensor " + name;
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    return bad_data(place + ": needs dtype, shape and data_offsets");
  }
  Tensor tensor;
  tensor.name = name;
  tensor.type = entry["dtype"].get<std::string>();
  const std::optional<DType> dtype = type_by_name(tensor.type);
  if (!dtype) return bad_data(place + ": unknown dtype " + tensor.type);
  tensor.dtype = *dtype;
  const auto shape = integers(entry["shape"]);
  const auto offsets = integers(entry["data_offsets"]);
  if (!shape || !offsets || offsets->size() != 2) {
    return bad_data(place + ": shape or data_offsets are no lists of integers");
  }
  tensor.shape = *shape;
  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  if (begin > end || end > data_bytes) {
    return bad_data(place + ": data_offsets " + shape_text(*offsets) + " leave the file's " +
                    std::to_string(data_bytes) + " bytes of data");
  }
  const auto count = shape_count(tensor.shape);
  const std::uint64_t size = dtype_size(tensor.dtype);
  if (!count || *count > data_bytes / size || *count * size != end - begin) {
    return bad_data(place + ": shape " + shape_text(tensor.shape) + " of " + tensor.type +
                    " does not fit " + std::to_string(end - begin) + " bytes");
  }
  tensor.count = *count;
  offset = begin;
  return tensor;
}

Status check_offsets(const SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const Tensor& tensor = header.tensors[i];
    if (header.offsets[i] != end) {
      return bad_data("tensor " + tensor.name + ": starts at " + std::to_string(header.offsets[i]) +
                      ", the one before ends at " + std::to_string(end));
    }
    end += tensor.count * dtype_size(tensor.dtype);
  }
  if (end == data_bytes) return {};
  return bad_data("the tensors have " + std::to_string(end) + " bytes, the file has " +
                  std::to_string(data_bytes));
}

// Orders by offset; tensors without values share an offset with the next one and come first.
void sort_by_offset(SafetensorsHeader& header) {
  std::vector<std::size_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(header.offsets[a], header.tensors[a].count > 0) <
           std::pair(header.offsets[b], header.tensors[b].count > 0);
  });
  std::vector<Tensor> tensors;
  std::vector<std::uint64_t> offsets;
  for (const std::size_t i : order) {
    tensors.push_back(std::move(header.tensors[i]));
    offsets.push_back(header.offsets[i]);
  }
  header.tensors = std::move(tensors);
  header.offsets = std::move(offsets);
}

}  // namespace

std::string safetensors_type(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return std::string(type.name);
  }
  return "";
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view header,
                                                   std::uint64_t data_bytes) {
  std::string repeated;
  const std::optional<Json> json = parse_json(header, &repeated);
  if (!json || !json->is_object()) return bad_data("no safetensors file: the header is no JSON");
  if (!repeated.empty()) return bad_data("tensor " + repeated + " stands twice in the header");
  SafetensorsHeader parsed;
  for (const auto& [name, entry] : json->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return bad_data("__metadata__ is no JSON object");
      parsed.metadata = entry;
      continue;
    }
    std::uint64_t offset = 0;
    Result<Tensor> tensor = parse_entry(name, entry, data_bytes, offset);
    if (!tensor.ok()) return tensor.error();
    parsed.tensors.push_back(std::move(*tensor));
    parsed.offsets.push_back(offset);
  }
  sort_by_offset(parsed);
  const Status status = check_offsets(parsed, data_bytes);
  if (!status.ok()) return status.error();
  return parsed;
}

std::string make_safetensors_header(std::span<const Tensor> tensors, const Json& metadata) {
  std::string text = "{";
  if (!metadata.is_null()) text += "\"__metadata__\":" + metadata.dump();
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.count * dtype_size(tensor.dtype);
    const std::string type = tensor.type.empty() ? safetensors_type(tensor.dtype) : tensor.type;
    if (text.size() > 1) text += ",";
    text += Json(tensor.name).dump() + ":{\"dtype\":" + Json(type).dump() +
            ",\"shape\":" + Json(tensor.shape).dump() +
            ",\"data_offsets\":" + Json({offset, end}).dump() + "}";
    offset = end;
  }
  text += "}";
  while (text.size() % 8 != 0) text += ' ';
  return text;
}

Result<TensorFile> read_safetensors(InputFile input) {
  const std::span<const std::byte> bytes = input.bytes();
  if (bytes.size() < 8) return bad_data("no safetensors file: shorter than its header length");
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  if (length > kHeaderLimit || length > bytes.size() - 8) {
    return bad_data("truncated, or no safetensors file: a header of " + std::to_string(length) +
                    " bytes in a file of " + std::to_string(bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  const std::span<const std::byte> data = bytes.subspan(8 + length);
  Result<SafetensorsHeader> header = parse_safetensors_header(text, data.size());
  if (!header.ok()) return header.error();
  TensorFile file{.input = std::move(input), .format = "safetensors", .tensors = {}};
  for (std::size_t i = 0; i < header->tensors.size(); ++i) {
    Tensor& tensor = header->tensors[i];
    tensor.bytes = data.subspan(header->offsets[i], tensor.count * dtype_size(tensor.dtype));
  }
  file.tensors = std::move(header->tensors);
  if (make_safetensors_header(file.tensors, header->metadata) == text) {
    if (!header->metadata.is_null()) file.restore["__metadata__"] = std::move(header->metadata);
  } else {
    file.restore["header"] = std::string(text);
  }
  return file;
}

}  // namespace gradwire::cli
