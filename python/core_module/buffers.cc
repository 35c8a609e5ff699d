#include "buffers.h"

namespace py = pybind11;

namespace gradwire::internal {

std::vector<Buffer> open_buffers(const std::vector<py::object>& objects, bool writable) {
  std::vector<Buffer> buffers;
  buffers.reserve(objects.size());
  for (const py::object& object : objects) buffers.emplace_back(object, writable);
  return buffers;
}

DType dtype_from_name(const std::string& name) {
  std::string known;
  for (unsigned number = 0; number < 256; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype_size(dtype) == 0) continue;
    if (dtype_name(dtype) == name) return dtype;
    if (!known.empty()) known += ", ";
    known += dtype_name(dtype);
  }
  throw py::type_error("unknown dtype " + name + "; one of: " + known);
}

std::uint64_t value_count(const Buffer& buffer, DType dtype) {
  const std::size_t size = dtype_size(dtype);
  if (buffer.size() % size == 0) return buffer.size() / size;
  throw py::value_error("a buffer of " + std::to_string(buffer.size()) +
                        " bytes does not hold whole values of " + std::string(dtype_name(dtype)));
}

}  // namespace gradwire::internal
