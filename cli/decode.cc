// gradwire decode IN OUT
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "failure.h"
#include "files.h"
#include "gradwire/codec.h"
#include "gw_file.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

// The format to write: the original one, unless OUT asks for plain values.
Result<std::string> output_format(const GwFile& file, const std::string& out) {
  if (has_suffix(out, ".raw") || has_suffix(out, ".bin")) return std::string("raw");
  const bool npy = has_suffix(out, ".npy");
  const bool safetensors = has_suffix(out, ".safetensors");
  if (file.format == "arrays") return std::string(npy ? "npy" : "safetensors");
  const std::string original = file.format.empty() ? "raw" : file.format;
  if ((npy && original != "npy") || (safetensors && original != "safetensors")) {
    return bad_usage("holds " + original +
                     ", OUT is named otherwise; .raw and .bin take the values of any");
  }
  if (original == "raw" || original == "npy" || original == "safetensors") return original;
  return bad_data("unknown format " + original + "; OUT can be .raw");
}

std::vector<Tensor> all_tensors(const GwFile& file) {
  std::vector<Tensor> tensors;
  for (const GwFrame& frame : file.frames) {
    tensors.insert(tensors.end(), frame.tensors.begin(), frame.tensors.end());
  }
  return tensors;
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.type == b.type && a.dtype == b.dtype && a.shape == b.shape;
}

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

// A header that was kept must describe the tensors that are there.
Result<std::string> safetensors_start(const GwFile& file, const std::vector<Tensor>& tensors) {
  const Json& metadata = file.frames.front().metadata;
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.count * dtype_size(tensor.dtype);
  std::string header;
  if (metadata.contains("header") && metadata["header"].is_string()) {
    header = metadata["header"].get<std::string>();
  } else {
    header = make_safetensors_header(tensors, metadata.value("__metadata__", Json()));
  }
  const Result<SafetensorsHeader> parsed = parse_safetensors_header(header, bytes);
  bool same = parsed.ok() && parsed.value().tensors.size() == tensors.size();
  for (std::size_t i = 0; same && i < tensors.size(); ++i) {
    same = same_tensor(parsed.value().tensors[i], tensors[i]);
  }
  if (!same) return bad_data("metadata: its header does not describe the frames");
  return length_prefix(header.size()) + header;
}

Result<std::string> npy_start(const GwFile& file, const std::vector<Tensor>& tensors) {
  if (tensors.size() != 1) {
    return bad_usage("holds " + std::to_string(tensors.size()) + " tensors, .npy takes one");
  }
  const Json& metadata = file.frames.front().metadata;
  Tensor tensor = tensors[0];
  if (file.format != "npy") tensor.type = default_type("npy", tensor.dtype);
  std::string start;
  if (!metadata.contains("header")) {
    const bool fortran_order = metadata.value("fortran_order", Json(false)) == Json(true);
    const std::string text = make_npy_text(tensor, fortran_order);
    start = npy_preamble(1, text.size()) + text;
  } else {
    const Json version = metadata.value("npy_version", Json(1));
    if (!metadata["header"].is_string() || !version.is_number_unsigned() || version > 3) {
      return bad_data("metadata: header and npy_version are wrong");
    }
    const std::string text = metadata["header"].get<std::string>();
    start = npy_preamble(version.get<unsigned>(), text.size()) + text;
  }
  // Also what is made here: how the type is spelled comes from the file.
  const auto parsed = parse_npy_header(std::as_bytes(std::span(start)), tensor.dtype);
  const bool same = parsed.ok() && parsed.value().data_offset == start.size() &&
                    parsed.value().tensor.type == tensor.type &&
                    parsed.value().tensor.shape == tensor.shape;
  if (!same) return bad_data("metadata: its header or type does not describe the frame");
  return start;
}

Result<std::string> file_start(const GwFile& file, const std::string& format) {
  if (format == "raw") return std::string();
  const std::vector<Tensor> tensors = all_tensors(file);
  return format == "npy" ? npy_start(file, tensors) : safetensors_start(file, tensors);
}

Status write_values(const GwFrame& frame, Workspace& workspace, OutputFile& out) {
  const std::size_t size = dtype_size(frame.info.dtype);
  const std::size_t bytes = frame.info.value_count * size;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::vector<TensorView> views;
  std::size_t offset = 0;
  for (const std::uint64_t count : frame.info.part_counts) {
    views.push_back({buffer.get() + offset, count, frame.info.dtype});
    offset += count * size;
  }
  const Status status = decode(frame.bytes, views, workspace);
  if (!status.ok()) return named(status.error());
  return out.write(std::span<const std::byte>(buffer.get(), bytes));
}

}  // namespace

Status run_decode(const DecodeArguments& arguments) {
  const Result<GwFile> file = read_gw_file(arguments.in);
  if (!file.ok()) return at(arguments.in, file.error());
  const GwFile& gw = *file;
  const Result<std::string> format = output_format(gw, arguments.out);
  if (!format.ok()) return at(arguments.in, format.error());
  const Result<std::string> start = file_start(gw, *format);
  if (!start.ok()) return at(arguments.in, start.error());
  Result<OutputFile> out = OutputFile::create(arguments.out, arguments.in);
  if (!out.ok()) return at(arguments.out, out.error());
  Status status = out->write(std::string_view(*start));
  if (!status.ok()) return at(arguments.out, status.error());
  Progress progress("decode", gw.input.bytes().size(), arguments.progress);
  Workspace workspace;
  status = workspace.set_threads(arguments.threads);
  if (!status.ok()) return named(status.error());
  for (std::size_t i = 0; i < gw.frames.size(); ++i) {
    status = write_values(gw.frames[i], workspace, *out);
    if (!status.ok()) return at(arguments.in, at("frame " + std::to_string(i), status.error()));
    progress.add(gw.frames[i].bytes.size());
  }
  status = out->commit();
  if (!status.ok()) return at(arguments.out, status.error());
  return {};
}

}  // namespace gradwire::cli
