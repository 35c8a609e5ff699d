// gradwire._core: frames of plain bytes. Types, shapes, names and containers are the business of
// gradwire/codecs.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "buffers.h"
#include "error_translation.h"
#include "frame_dict.h"
#include "gradwire/codec.h"
#include "gradwire/version.h"
#include "local_group.h"

namespace py = pybind11;

namespace gradwire::internal {
namespace {

CodecSpec parse_codec(const std::string& text) { return value_or_throw(CodecSpec::parse(text)); }

// The caller holds the GIL.
py::bytes encode_frame(const std::vector<py::object>& arrays, const std::string& dtype_text,
                       const std::string& codec_text, const std::string& metadata,
                       std::uint32_t first_tensor, std::uint64_t step, unsigned threads) {
  const CodecSpec codec = parse_codec(codec_text);
  const DType dtype = dtype_from_name(dtype_text);
  const std::vector<Buffer> buffers = open_buffers(arrays, /*writable=*/false);
  std::vector<Part> parts;
  parts.reserve(buffers.size());
  std::uint64_t values = 0;
  for (const Buffer& buffer : buffers) {
    const std::uint64_t count = value_count(buffer, dtype);
    parts.push_back({.values = {buffer.data(), count, dtype},
                     .tensor = first_tensor + static_cast<std::uint32_t>(parts.size())});
    values += count;
  }
  EncodeOptions options;
  options.context.step = step;
  options.metadata = metadata;
  const std::uint64_t capacity =
      max_encoded_size(codec, dtype, values, parts.size(), metadata.size());
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(capacity));
  if (bytes == nullptr) throw py::error_already_set();
  const std::span<std::byte> space(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes)),
                                   capacity);
  const Result<std::size_t> length = [&]() -> Result<std::size_t> {
    const py::gil_scoped_release release;
    Workspace workspace;
    if (const Status set = workspace.set_threads(threads); !set.ok()) return set.error();
    return encode(codec, parts, options, space, workspace);
  }();
  if (!length.ok()) {
    Py_DECREF(bytes);
    throw_error(length.error());
  }
  if (_PyBytes_Resize(&bytes, static_cast<Py_ssize_t>(*length)) != 0) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::bytes>(bytes);
}

void decode_frame(const py::object& frame, const std::string& dtype_text,
                  const std::vector<py::object>& arrays, unsigned threads) {
  const Buffer bytes(frame, /*writable=*/false);
  const DType dtype = dtype_from_name(dtype_text);
  const std::vector<Buffer> buffers = open_buffers(arrays, /*writable=*/true);
  std::vector<TensorView> views;
  views.reserve(buffers.size());
  for (const Buffer& buffer : buffers) {
    views.push_back({buffer.data(), value_count(buffer, dtype), dtype});
  }
  const Status status = [&]() -> Status {
    const py::gil_scoped_release release;
    Workspace workspace;
    if (Status set = workspace.set_threads(threads); !set.ok()) return set;
    return decode(bytes.bytes(), views, workspace);
  }();
  ok_or_throw(status);
}

void decode_frame_part(const py::object& frame, std::uint32_t index, const std::string& dtype_text,
                       const py::object& array, unsigned threads) {
  const Buffer bytes(frame, /*writable=*/false);
  const DType dtype = dtype_from_name(dtype_text);
  const Buffer buffer(array, /*writable=*/true);
  const TensorView part{buffer.data(), value_count(buffer, dtype), dtype};
  const Status status = [&]() -> Status {
    const py::gil_scoped_release release;
    Workspace workspace;
    if (Status set = workspace.set_threads(threads); !set.ok()) return set;
    return decode_part(bytes.bytes(), index, part, workspace);
  }();
  ok_or_throw(status);
}

py::dict inspect_frame(const py::object& frame) {
  const Buffer bytes(frame, /*writable=*/false);
  return frame_dict(value_or_throw(inspect(bytes.bytes())));
}

void verify_frame(const py::object& frame) {
  const Buffer bytes(frame, /*writable=*/false);
  const Status status = [&] {
    const py::gil_scoped_release release;
    return verify(bytes.bytes());
  }();
  ok_or_throw(status);
}

std::uint64_t first_frame_length(const py::object& frames) {
  const Buffer bytes(frames, /*writable=*/false);
  return value_or_throw(frame_length(bytes.bytes()));
}

void check_codec_dtype(const std::string& codec, const std::string& dtype) {
  ok_or_throw(check_dtype(parse_codec(codec), dtype_from_name(dtype)));
}

void define_module(py::module_& module) {
  module.doc() = "Encodes and decodes frames of plain bytes; see gradwire.codecs.";
  module.attr("__version__") = GRADWIRE_VERSION_STRING;
  module.attr("FORMAT_VERSION") = kFormatVersion;
  module.def("encode_frame", &encode_frame, py::arg("arrays"), py::arg("dtype"), py::arg("codec"),
             py::arg("metadata") = "", py::arg("first_tensor") = 0, py::arg("step") = 0,
             py::arg("threads") = 1,
             "One frame from contiguous buffers whose bytes are values of dtype, one per part.");
  module.def("decode_frame", &decode_frame, py::arg("frame"), py::arg("dtype"), py::arg("arrays"),
             py::arg("threads") = 1, "Decodes one frame into writable buffers, one per part.");
  module.def("decode_part", &decode_frame_part, py::arg("frame"), py::arg("index"),
             py::arg("dtype"), py::arg("array"), py::arg("threads") = 1,
             "Decodes one part of one frame into a writable buffer.");
  module.def("inspect_frame", &inspect_frame, py::arg("frame"),
             "What the header, part table and block index of one frame say.");
  module.def("verify_frame", &verify_frame, py::arg("frame"), "Checks all checksums of one frame.");
  module.def("frame_length", &first_frame_length, py::arg("frames"),
             "Bytes of the frame that the buffer starts with.");
  module.def(
      "codec_text", [](const std::string& text) { return parse_codec(text).to_string(); },
      py::arg("codec"), "The canonical text of a codec.");
  module.def("check_dtype", &check_codec_dtype, py::arg("codec"), py::arg("dtype"),
             "Raises UnsupportedDType if the codec cannot encode the type.");
  module.def(
      "is_compressible",
      [](const std::string& dtype) { return is_compressible(dtype_from_name(dtype)); },
      py::arg("dtype"), "False for types that travel unchanged.");
  module.def("codecs", &codec_list, "The codecs, as dicts.");
  define_local_group(module);
}

}  // namespace
}  // namespace gradwire::internal

PYBIND11_MODULE(_core, module) { gradwire::internal::define_module(module); }
