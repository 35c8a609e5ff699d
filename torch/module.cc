// The Python module gradwire._torch. Private: gradwire.attach and gradwire.all_reduce use it.

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/extension.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "c10d_transport.h"
#include "channel.h"
#include "ddp_hook.h"
#include "error_translation.h"

namespace gradwire::internal {
namespace {

namespace py = pybind11;
using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

// A Python object that threads without the GIL may drop. At the end of the interpreter it is
// leaked: there is nobody left to free it.
std::shared_ptr<py::object> shared_object(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire gil;
            delete held;
          }};
}

// Deletes an object whose destructor joins a thread that may be waiting for the GIL.
template <typename T>
void delete_without_gil(T* object) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    const py::gil_scoped_release release;
    delete object;
  } else {
    delete object;
  }
}

// A garbage collection, or a callback, that drops the last reference may run on the reducer's own
// thread, which cannot wait for itself: then another one does.
void delete_reducer(BucketReducer* reducer) {
  if (reducer->on_worker_thread()) {
    std::thread(delete_without_gil<BucketReducer>, reducer).detach();
  } else {
    delete_without_gil(reducer);
  }
}

Error connect_error(const std::string& what) {
  Error error;
  const bool timed_out =
      what.find("imed out") != std::string::npos || what.find("imeout") != std::string::npos;
  error.code = timed_out ? ErrorCode::kDeadlineExceeded : ErrorCode::kPeerLost;
  error.message = "cannot make a group of these ranks: " + what.substr(0, what.find('\n'));
  return error;
}

// `connect`: () -> ProcessGroup, collective, gives up the group that it made before.
Channel::Connect make_connect(py::object connect) {
  return [shared = shared_object(std::move(connect))](
             std::size_t slot_bytes) -> Result<std::unique_ptr<Transport>> {
    try {
      ProcessGroupPtr group;
      {
        const py::gil_scoped_acquire gil;
        try {
          group = (*shared)().cast<ProcessGroupPtr>();
        } catch (const std::exception& exception) {
          // Inside the GIL: this may be an exception of Python.
          return connect_error(exception.what());
        }
      }
      return std::unique_ptr<Transport>(
          std::make_unique<C10dTransport>(std::move(group), slot_bytes));
    } catch (const std::exception& exception) {
      return connect_error(exception.what());
    }
  };
}

// The exception that the backward raises: the class of gradwire.errors with all its fields, which
// autograd carries through. Without an interpreter, its text.
std::exception_ptr make_exception(const Error& error) {
  if (Py_IsInitialized()) {
    const py::gil_scoped_acquire gil;
    try {
      throw_error(error);
    } catch (py::error_already_set& raised) {
      raised.restore();
      python_error kept;
      kept.persist();
      return std::make_exception_ptr(std::move(kept));
    } catch (...) {
      // gradwire.errors cannot be imported any more.
    }
  }
  return std::make_exception_ptr(std::runtime_error(error.to_string()));
}

CodecSpec parse_codec(const std::string& text) { return value_or_throw(CodecSpec::parse(text)); }

std::chrono::milliseconds to_deadline(double seconds) {
  constexpr double kLongest = 1e7;  // about four months; keeps the sum with a clock in range
  if (!(seconds > 0) || seconds > kLongest) {
    Error error;
    error.code = ErrorCode::kOutOfRange;
    error.field = "deadline";
    error.mine = std::to_string(seconds);
    error.message = "deadline is " + error.mine + " s, must be above 0 and at most 1e7 s";
    throw_error(error);
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
}

// `choose`: None, or (step) -> text of the codec.
ReducerSettings::ChooseCodec make_choice(const py::object& choose) {
  if (choose.is_none()) return {};
  return [shared = shared_object(choose)](std::uint64_t step) -> Result<CodecSpec> {
    const py::gil_scoped_acquire gil;
    try {
      return CodecSpec::parse((*shared)(step).cast<std::string>());
    } catch (const std::exception& exception) {
      Error error;
      error.code = ErrorCode::kInvalidArgument;
      error.field = "codec";
      error.message = std::string("the schedule gave no codec: ") + exception.what();
      error.message.resize(std::min(error.message.size(), error.message.find('\n')));
      return error;
    }
  };
}

py::dict to_dict(const CollectiveStats& stats) {
  using py::operator""_a;
  return py::dict(
      "calls"_a = stats.calls, "values"_a = stats.values, "raw_bytes_out"_a = stats.raw_bytes_out,
      "encoded_bytes_out"_a = stats.encoded_bytes_out,
      "encoded_bytes_in"_a = stats.encoded_bytes_in, "encode_seconds"_a = stats.encode_seconds,
      "decode_seconds"_a = stats.decode_seconds, "wait_seconds"_a = stats.wait_seconds,
      "total_seconds"_a = stats.total_seconds, "stored_blocks"_a = stats.stored_blocks,
      "coded_blocks"_a = stats.coded_blocks, "fixed_blocks"_a = stats.fixed_blocks,
      "outliers"_a = stats.outliers, "nonfinite"_a = stats.nonfinite,
      "error_squares"_a = stats.error_squares, "value_squares"_a = stats.value_squares);
}

py::dict reducer_stats(const BucketReducer& reducer) {
  ReducerStats stats;
  {
    const py::gil_scoped_release release;
    stats = reducer.stats();
  }
  py::dict dict = to_dict(stats.collective);
  dict["steps"] = stats.steps;
  dict["buckets"] = stats.buckets;
  dict["fallbacks"] = stats.fallbacks;
  dict["errors"] = stats.errors;
  dict["exposed_seconds"] = stats.exposed_seconds;
  dict["sequence"] = stats.sequence;
  return dict;
}

py::object reducer_last_error(const BucketReducer& reducer) {
  std::optional<Error> error;
  {
    const py::gil_scoped_release release;
    error = reducer.last_error();
  }
  return error.has_value() ? exception_object(*error) : py::none();
}

void configure(BucketReducer& reducer, const std::string& codec, const py::object& choose_codec,
               double deadline, std::uint64_t measure_every, bool compare) {
  const ReducerSettings settings{parse_codec(codec), make_choice(choose_codec),
                                 to_deadline(deadline), measure_every};
  Status status;
  {
    const py::gil_scoped_release release;
    status = compare ? reducer.configure(settings) : reducer.configure_later(settings);
  }
  ok_or_throw(status);
}

CodecSpec codec_of(const BucketReducer& reducer) {
  const py::gil_scoped_release release;
  return reducer.codec();
}

void set_codec(BucketReducer& reducer, const std::string& codec) {
  const CodecSpec spec = parse_codec(codec);
  const py::gil_scoped_release release;
  reducer.set_codec(spec);
}

std::shared_ptr<torch::jit::PythonFutureWrapper> submit(BucketReducer& reducer,
                                                        c10d::GradBucket& bucket) {
  BucketReducer::Future future;
  {
    const py::gil_scoped_release release;
    future = reducer.submit(bucket);
  }
  return std::make_shared<torch::jit::PythonFutureWrapper>(std::move(future));
}

// Values of `tensor`, which gradwire.all_reduce has checked: on the CPU and contiguous.
TensorView view_of(const at::Tensor& tensor) {
  const std::optional<DType> dtype = to_dtype(tensor.scalar_type());
  if (!dtype.has_value()) {
    Error error;
    error.code = ErrorCode::kUnsupportedDType;
    error.field = "dtype";
    error.mine = c10::toString(tensor.scalar_type());
    error.message = "tensors of type " + error.mine +
                    " cannot be reduced; float32, float64, float16 and bfloat16 can";
    throw_error(error);
  }
  return {tensor.data_ptr(), static_cast<std::uint64_t>(tensor.numel()), *dtype};
}

void check_dtype_of(const std::string& codec, const at::Tensor& tensor) {
  ok_or_throw(check_dtype(parse_codec(codec), view_of(tensor).dtype));
}

py::dict channel_all_reduce(Channel& channel, const at::Tensor& tensor, bool average,
                            const std::string& codec, std::uint64_t step, double deadline) {
  CollectiveOptions options;
  options.codec = parse_codec(codec);
  options.reduction = average ? Reduction::kAvg : Reduction::kSum;
  options.step = step;
  options.deadline = to_deadline(deadline);
  const TensorView view = view_of(tensor);
  CollectiveStats stats;
  Status status;
  {
    const py::gil_scoped_release release;
    status = channel.all_reduce(view, {}, options, Channel::IfRetired::kReconnect, &stats);
  }
  ok_or_throw(status);
  return to_dict(stats);
}

std::shared_ptr<BucketReducer> make_reducer(ProcessGroupPtr group, py::object connect) {
  return {new BucketReducer(std::move(group), make_connect(std::move(connect)), make_exception),
          delete_reducer};
}

std::shared_ptr<Channel> make_channel(py::object connect) {
  return {new Channel(make_connect(std::move(connect)), Channel::Numbering::kContinues),
          delete_without_gil<Channel>};
}

void bind_reducer(py::module_& module) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<BucketReducer, std::shared_ptr<BucketReducer>>(module, "BucketReducer")
      .def(py::init(&make_reducer), py::arg("group"), py::arg("connect"))
      .def(
          "register_with",
          [](std::shared_ptr<BucketReducer> self, const std::shared_ptr<c10d::Reducer>& reducer) {
            reducer->register_comm_hook(std::make_unique<GradwireHook>(std::move(self)));
          },
          py::arg("reducer"), "Makes this the hook of torch's reducer, for good.")
      .def("number_parameters", &BucketReducer::number_parameters, py::arg("parameters"))
      .def("configure", &configure, py::arg("codec"), py::arg("choose_codec"), py::arg("deadline"),
           py::arg("measure_every"), py::arg("compare"))
      .def("detach", &BucketReducer::detach, Release())
      .def("submit", &submit, py::arg("bucket"))
      .def("stats", &reducer_stats)
      .def("last_error", &reducer_last_error)
      .def("close", &BucketReducer::shut_down, Release(),
           "Ends the thread; buckets fail from now on.")
      .def_property("step", py::cpp_function(&BucketReducer::step, Release()),
                    py::cpp_function(&BucketReducer::set_step, Release()))
      .def_property(
          "codec", [](const BucketReducer& self) { return codec_of(self).to_string(); },
          &set_codec);
}

}  // namespace
}  // namespace gradwire::internal

PYBIND11_MODULE(_torch, module) {
  namespace py = pybind11;
  using namespace gradwire::internal;
  py::module_::import("torch.distributed");  // registers the types of c10d that are passed
  bind_reducer(module);
  py::class_<Channel, std::shared_ptr<Channel>>(module, "Channel")
      .def(py::init(&make_channel), py::arg("connect"))
      .def("all_reduce", &channel_all_reduce, py::arg("tensor"), py::arg("average"),
           py::arg("codec"), py::arg("step"), py::arg("deadline"))
      .def("close", &Channel::close, py::call_guard<py::gil_scoped_release>());
  module.def(
      "check_deadline", [](double seconds) { static_cast<void>(to_deadline(seconds)); },
      py::arg("seconds"), "Raises OutOfRange if no call can take so long.");
  module.def("check_dtype", &check_dtype_of, py::arg("codec"), py::arg("tensor"),
             "Raises UnsupportedDType if `codec` cannot encode values like those of `tensor`.");
  module.def(
      "canonical", [](const std::string& codec) { return parse_codec(codec).to_string(); },
      py::arg("codec"), "The text of `codec` with every parameter that matters.");
}
