// npy: magic, version, header length, a Python dictionary, data.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "failure.h"
#include "tensor_file.h"

namespace gradwire::cli {
namespace {

struct TypeName {
  std::string_view name;
  DType dtype;
};

constexpr std::array kTypes = {
    TypeName{"<f4", DType::kFloat32}, TypeName{"<f8", DType::kFloat64},
    TypeName{"<f2", DType::kFloat16}, TypeName{"|u1", DType::kUInt8},
    TypeName{"|i1", DType::kInt8},    TypeName{"<i2", DType::kInt16},
    TypeName{"<i4", DType::kInt32},   TypeName{"<i8", DType::kInt64},
    TypeName{"<u2", DType::kUInt16},  TypeName{"<u4", DType::kUInt32},
    TypeName{"<u8", DType::kUInt64},  TypeName{"|b1", DType::kBool},
};

// The few words of Python that numpy writes: a dictionary of a string, a bool and a tuple of
// integers. Every step looks before it reads.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : text_(text) {}

  bool parse() {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':') || !value(key)) return false;
      if (!take(',') && !ahead('}')) return false;
    }
    skip();
    return text_.empty() && descr && fortran_order && shape;
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;

 private:
  void skip() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool ahead(char c) {
    skip();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    if (!ahead(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view expected) {
    skip();
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  bool string(std::string& out) {
    const char quote = ahead('"') ? '"' : '\'';
    if (!take(quote)) return false;
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) return false;
    out = std::string(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return out.find('\\') == std::string::npos;
  }
  bool tuple(std::vector<std::uint64_t>& out) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip();
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc()) return false;
      out.push_back(number);
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L');  // as Python 2 wrote long integers
      if (!take(',') && !ahead(')')) return false;
    }
    return true;
  }
  bool value(const std::string& key) {
    if (key == "descr" && !descr) return string(descr.emplace());
    if (key == "shape" && !shape) return tuple(shape.emplace());
    if (key != "fortran_order" || fortran_order) return false;
    fortran_order = word("True");
    return *fortran_order || word("False");
  }

  std::string_view text_;
};

// What the user's --dtype may say about a type that numpy cannot name: same size, and spelled as
// raw bytes ("V2") or as the unsigned integer whose bits it has.
bool may_hold(std::string_view descr, DType dtype) {
  const bool two = dtype == DType::kBFloat16 || dtype == DType::kFloat16;
  const bool one = dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2;
  if (two) return descr == "<V2" || descr == "|V2" || descr == "<u2";
  return one && (descr == "<V1" || descr == "|V1" || descr == "|u1" || descr == "<f1");
}

Result<DType> dtype_of(const std::string& descr, std::optional<DType> given) {
  for (const TypeName& type : kTypes) {
    if (type.name == descr && (!given || *given == type.dtype)) return type.dtype;
  }
  if (given && may_hold(descr, *given)) return *given;
  if (given) {
    return bad_usage("--dtype " + std::string(dtype_name(*given)) + " does not fit the file's " +
                     descr);
  }
  if (descr.starts_with(">")) return bad_data("big-endian values (" + descr + ")");
  if (descr.ends_with("V2") || descr.ends_with("V1")) {
    return bad_usage("the file does not name its type (" + descr +
                     "): say it with --dtype, for example --dtype bfloat16");
  }
  return bad_data("unsupported dtype " + descr);
}

}  // namespace

std::optional<std::string> npy_type(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return std::string(type.name);
  }
  return std::nullopt;
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file, std::optional<DType> dtype) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with("\x93NUMPY")) return bad_data("no npy file: bad magic");
  if (text.size() < 12) return bad_data("npy header is truncated");
  NpyHeader header;
  header.version = static_cast<unsigned char>(text[6]);
  if (header.version < 1 || header.version > 3) {
    return bad_data("npy version " + std::to_string(header.version) + "; 1 to 3 are known");
  }
  const std::size_t length_bytes = header.version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(text[8 + i]);
  }
  header.data_offset = 8 + length_bytes;
  if (length > text.size() - header.data_offset) return bad_data("npy header is truncated");
  header.text = std::string(text.substr(header.data_offset, length));
  header.data_offset += length;
  for (const char c : header.text) {
    if (static_cast<unsigned char>(c) > 126) return bad_data("npy header is not plain ASCII");
  }
  Dictionary dictionary(header.text);
  if (!dictionary.parse()) return bad_data("npy header is no plain array's description");
  const Result<DType> type = dtype_of(*dictionary.descr, dtype);
  if (!type.ok()) return type.error();
  header.fortran_order = *dictionary.fortran_order;
  header.tensor.name = "data";
  header.tensor.type = *dictionary.descr;
  header.tensor.dtype = *type;
  header.tensor.shape = *dictionary.shape;
  const auto count = shape_count(header.tensor.shape);
  if (!count) return bad_data("npy shape " + shape_text(header.tensor.shape) + " is too large");
  header.tensor.count = *count;
  return header;
}

std::string npy_preamble(unsigned version, std::size_t text_length) {
  std::string preamble = "\x93NUMPY";
  preamble += static_cast<char>(version);
  preamble += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    preamble += static_cast<char>(text_length >> (8 * i) & 0xff);
  }
  return preamble;
}

std::string make_npy_text(const Tensor& tensor, bool fortran_order) {
  std::string text = "{'descr': '" + tensor.type +
                     "', 'fortran_order': " + (fortran_order ? "True" : "False") + ", 'shape': (";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i > 0) text += ' ';
    text += std::to_string(tensor.shape[i]) + ',';
  }
  if (tensor.shape.size() > 1) text.pop_back();
  text += "), }";
  constexpr std::size_t kPreamble = 10;  // of version 1
  while ((kPreamble + text.size() + 1) % 64 != 0) text += ' ';
  return text + "\n";
}

Result<TensorFile> read_npy(InputFile input, std::optional<DType> dtype) {
  const std::span<const std::byte> bytes = input.bytes();
  Result<NpyHeader> header = parse_npy_header(bytes, dtype);
  if (!header.ok()) return header.error();
  Tensor& tensor = header->tensor;
  const std::size_t size = dtype_size(tensor.dtype);
  const std::size_t data_bytes = bytes.size() - header->data_offset;
  if (tensor.count > data_bytes / size || tensor.count * size != data_bytes) {
    return bad_data("shape " + shape_text(tensor.shape) + " of " + tensor.type +
                    " does not fit the " + std::to_string(data_bytes) + " bytes of data");
  }
  tensor.bytes = bytes.subspan(header->data_offset);
  TensorFile file{.input = std::move(input), .format = "npy", .tensors = {}};
  file.restore["fortran_order"] = header->fortran_order;
  file.restore["header"] = std::move(header->text);
  file.restore["npy_version"] = header->version;
  file.tensors.push_back(std::move(tensor));
  return file;
}

}  // namespace gradwire::cli
