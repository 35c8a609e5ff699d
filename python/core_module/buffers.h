// Contiguous memory of Python objects (bytes, memoryview, numpy arrays).
#ifndef GRADWIRE_CORE_MODULE_BUFFERS_H_
#define GRADWIRE_CORE_MODULE_BUFFERS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// Holds the memory of `object` while it lives; the GIL is needed to make and to end it, not to
// use its bytes. Raises BufferError for memory that is not contiguous or not writable.
class Buffer {
 public:
  Buffer(const pybind11::object& object, bool writable) {
    const int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw pybind11::error_already_set();
  }
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  void* data() const noexcept { return view_.buf; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.len); }
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), size()};
  }

 private:
  Py_buffer view_{};
};

std::vector<Buffer> open_buffers(const std::vector<pybind11::object>& objects, bool writable);

// Raises TypeError for a name that is no type.
DType dtype_from_name(const std::string& name);

// Raises ValueError if the buffer does not hold whole values.
std::uint64_t value_count(const Buffer& buffer, DType dtype);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_MODULE_BUFFERS_H_
