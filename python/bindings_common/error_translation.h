// Turns an Error of the library into the Python exception of gradwire.errors that has its name.
// Shared by the modules _core and _torch, which use different versions of pybind11: header only.
#ifndef GRADWIRE_BINDINGS_COMMON_ERROR_TRANSLATION_H_
#define GRADWIRE_BINDINGS_COMMON_ERROR_TRANSLATION_H_

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "gradwire/status.h"

namespace gradwire::internal {

// The exception object for `error`. The caller holds the GIL.
inline pybind11::object exception_object(const Error& error) {
  return pybind11::module_::import("gradwire.errors")
      .attr("make_error")(std::string(error_name(error.code)), error.message, error.field,
                          error.mine, error.theirs, error.rank, error.sequence);
}

// Raises `error` in Python. The caller holds the GIL.
[[noreturn]] inline void throw_error(const Error& error) {
  const pybind11::object exception = exception_object(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw pybind11::error_already_set();
}

// The value of `result`, or its error raised in Python. The caller holds the GIL.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw_error(result.error());
  return std::move(result).value();
}

inline void ok_or_throw(const Status& status) {
  if (!status.ok()) throw_error(status.error());
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_BINDINGS_COMMON_ERROR_TRANSLATION_H_
