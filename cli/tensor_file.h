// Tensors in the files that the command line reads and restores: safetensors, npy, raw.
#ifndef GRADWIRE_CLI_TENSOR_FILE_H_
#define GRADWIRE_CLI_TENSOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files.h"
#include "gradwire/status.h"
#include "gradwire/tensor_view.h"

namespace gradwire::cli {

using Json = nlohmann::json;

// One tensor of a file. `bytes` is count x dtype_size(dtype) long, in the file's order.
struct Tensor {
  std::string name;
  std::string type;               // as the file spells it: "BF16", "<f4"; empty for raw
  DType dtype = DType::kFloat32;  // with these bits the values travel
  std::vector<std::uint64_t> shape;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// A file's tensors in the order of their bytes, which leave no gaps.
struct TensorFile {
  InputFile input;
  std::string format;  // "safetensors", "npy", "raw"
  std::vector<Tensor> tensors;
  Json restore = Json::object();  // what else is needed to write an equal file
};

// `dtype` names the type of raw values ("float32"), and of npy values that numpy cannot name
// (bfloat16 and float8); empty: none given.
Result<TensorFile> read_tensor_file(const std::string& path, const std::string& dtype);

// ---- shared by readers and writers of the formats ----

std::optional<DType> dtype_by_name(std::string_view name);
std::string dtype_names();
// Nullopt if `text` is no JSON, or nested deeper than any header is: copies and text of what the
// parser gives take the stack's depth. `repeated`: a key of the outermost object that stands twice,
// of which the parser keeps the last.
std::optional<Json> parse_json(std::string_view text, std::string* repeated = nullptr);
// Product of the shape; nullopt if it exceeds 2^63.
std::optional<std::uint64_t> shape_count(std::span<const std::uint64_t> shape);
std::string shape_text(std::span<const std::uint64_t> shape);

// What a safetensors header says; `bytes` of the tensors are set by the caller's data.
struct SafetensorsHeader {
  std::vector<Tensor> tensors;
  std::vector<std::uint64_t> offsets;  // of each tensor, from the end of the header
  Json metadata;                       // "__metadata__", null if none
};
// Checks everything against `data_bytes`, the length of what follows the header: known types,
// offsets in order, without gaps or overlaps, sizes that fit the shapes, no name twice.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view header,
                                                   std::uint64_t data_bytes);
// The header as the safetensors library writes it (padded to 8 bytes), tensors in this order.
std::string make_safetensors_header(std::span<const Tensor> tensors, const Json& metadata);
// "F32" for float32; how types without a name of their own are spelled comes from `type`.
std::string safetensors_type(DType dtype);
Result<TensorFile> read_safetensors(InputFile input);

struct NpyHeader {
  Tensor tensor;
  bool fortran_order = false;
  unsigned version = 1;
  std::size_t data_offset = 0;
  std::string text;  // the dictionary with its padding
};
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file, std::optional<DType> dtype);
// Magic, version and length before `text`.
std::string npy_preamble(unsigned version, std::size_t text_length);
// The dictionary as numpy writes it in version 1.
std::string make_npy_text(const Tensor& tensor, bool fortran_order);
// "<f4" for float32; nullopt for types that numpy cannot name.
std::optional<std::string> npy_type(DType dtype);
Result<TensorFile> read_npy(InputFile input, std::optional<DType> dtype);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_TENSOR_FILE_H_
