#include "gw_file.h"

#include <optional>
#include <utility>

#include "failure.h"

namespace gradwire::cli {
namespace {

Result<std::vector<std::span<const std::byte>>> cut_frames(std::span<const std::byte> bytes) {
  std::vector<std::span<const std::byte>> frames;
  while (!bytes.empty()) {
    const std::string place = "frame " + std::to_string(frames.size());
    const Result<std::uint64_t> length = frame_length(bytes);
    if (!length.ok()) return at(place, named(length.error()));
    if (*length == 0 || *length > bytes.size()) {
      return bad_data(place + ": Truncated: has " + std::to_string(*length) + " bytes, " +
                      std::to_string(bytes.size()) + " are there");
    }
    frames.push_back(bytes.first(*length));
    bytes = bytes.subspan(*length);
  }
  return frames;
}

std::string text_at(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

Status read_shape(const Json& entry, Tensor& tensor) {
  if (!entry.is_object() || !entry.contains("shape") || !entry["shape"].is_array()) {
    return bad_data("metadata: tensor without a shape");
  }
  for (const Json& extent : entry["shape"]) {
    if (!extent.is_number_unsigned()) return bad_data("metadata: a shape is no list of integers");
    tensor.shape.push_back(extent.get<std::uint64_t>());
  }
  const auto count = shape_count(tensor.shape);
  if (count && *count == tensor.count) return {};
  return bad_data("metadata: tensor " + tensor.name + " has shape " + shape_text(tensor.shape) +
                  ", its part has " + std::to_string(tensor.count) + " values");
}

// Fills frame.tensors from the metadata, whose numbers must be those of the part table.
Status read_tensors(const std::string& format, GwFrame& frame) {
  const std::vector<std::uint64_t>& counts = frame.info.part_counts;
  const bool described = frame.metadata.contains("tensors");
  const Json entries = described ? frame.metadata["tensors"] : Json::array();
  if (described && (!entries.is_array() || entries.size() != counts.size())) {
    return bad_data("metadata: does not describe " + std::to_string(counts.size()) + " parts");
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Tensor tensor;
    tensor.name = "part" + std::to_string(i);
    tensor.dtype = frame.info.dtype;
    tensor.type = default_type(format, tensor.dtype);
    tensor.count = counts[i];
    tensor.shape = {counts[i]};
    if (described) {
      tensor.shape.clear();
      tensor.name = text_at(entries[i], "name");
      Status status = read_shape(entries[i], tensor);
      if (!status.ok()) return status;
      if (const std::string type = text_at(entries[i], "dtype"); !type.empty()) tensor.type = type;
    }
    frame.tensors.push_back(std::move(tensor));
  }
  return {};
}

// A lost or repeated frame leaves whole frames: the numbers in the metadata find it.
Status check_number(const Json& metadata, std::size_t frame, std::size_t frames) {
  const auto matches = [&](const char* key, std::size_t value) {
    return !metadata.contains(key) || metadata[key] == value;
  };
  if (matches("frame", frame) && matches("frames", frames)) return {};
  return bad_data("Truncated: is frame " + metadata.value("frame", Json()).dump() + " of " +
                  metadata.value("frames", Json()).dump() + ", found as frame " +
                  std::to_string(frame) + " of " + std::to_string(frames));
}

Status read_frame(GwFile& file, std::size_t number, std::size_t count) {
  GwFrame& frame = file.frames[number];
  Result<FrameInfo> info = inspect(frame.bytes);
  if (!info.ok()) return named(info.error());
  frame.info = std::move(*info);
  if (!frame.info.metadata.empty()) {
    std::optional<Json> metadata = parse_json(frame.info.metadata);
    if (!metadata || !metadata->is_object()) return bad_data("metadata is no JSON object");
    frame.metadata = std::move(*metadata);
  }
  const std::string format = text_at(frame.metadata, "format");
  if (number == 0) file.format = format;
  if (format != file.format) {
    return bad_data("is of a file of format " + format + ", the first frame of " + file.format);
  }
  Status status = check_number(frame.metadata, number, count);
  if (!status.ok()) return status;
  return read_tensors(file.format, frame);
}

}  // namespace

Result<GwFile> read_gw_file(const std::string& path) {
  Result<InputFile> input = InputFile::open(path);
  if (!input.ok()) return input.error();
  GwFile file{.input = std::move(*input), .format = "", .frames = {}};
  const auto frames = cut_frames(file.input.bytes());
  if (!frames.ok()) return frames.error();
  for (const std::span<const std::byte> bytes : *frames) {
    GwFrame frame;
    frame.bytes = bytes;
    file.frames.push_back(std::move(frame));
  }
  for (std::size_t i = 0; i < file.frames.size(); ++i) {
    const Status status = read_frame(file, i, file.frames.size());
    if (!status.ok()) return at("frame " + std::to_string(i), status.error());
  }
  return file;
}

std::string default_type(const std::string& format, DType dtype) {
  if (format == "safetensors" || format == "arrays") return safetensors_type(dtype);
  if (format != "npy") return "";
  if (const auto type = npy_type(dtype)) return *type;
  return dtype_size(dtype) == 2 ? "<V2" : "|V1";  // as numpy spells the types of ml_dtypes
}

std::string make_metadata(const TensorFile& file, std::span<const Tensor> tensors,
                          std::size_t frame, std::size_t frames) {
  Json metadata = frame == 0 ? file.restore : Json::object();
  metadata["format"] = file.format;
  metadata["frame"] = frame;
  metadata["frames"] = frames;
  metadata["tensors"] = Json::array();
  for (const Tensor& tensor : tensors) {
    Json entry = {{"name", tensor.name}, {"shape", tensor.shape}};
    if (tensor.type != default_type(file.format, tensor.dtype)) entry["dtype"] = tensor.type;
    metadata["tensors"].push_back(std::move(entry));
  }
  return metadata.dump();
}

}  // namespace gradwire::cli
