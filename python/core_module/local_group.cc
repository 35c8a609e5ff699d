#include "local_group.h"

#include <pybind11/stl.h>

#include <chrono>
#include <thread>
#include <utility>

#include "buffers.h"
#include "error_translation.h"
#include "gradwire/codec.h"
#include "gradwire/transport.h"

namespace py = pybind11;

namespace gradwire::internal {
namespace {

constexpr int kMostRanks = 64;
// Long enough for ranks that share one busy core, short enough that a defect is seen.
constexpr std::chrono::seconds kDeadline{60};

Error out_of_range_world(int world) {
  Error error;
  error.code = ErrorCode::kOutOfRange;
  error.field = "world";
  error.mine = std::to_string(world);
  error.message = "world is " + error.mine + ", must be 2 to " + std::to_string(kMostRanks);
  return error;
}

Error wrong_array_count(std::size_t arrays, std::size_t world) {
  Error error;
  error.code = ErrorCode::kInvalidArgument;
  error.field = "arrays";
  error.mine = std::to_string(arrays);
  error.message = error.mine + " arrays for " + std::to_string(world) + " ranks";
  return error;
}

// The error that caused the others: ranks that were only told of one say kPeerError or kPeerLost.
const Status& cause(const std::vector<Status>& statuses) {
  const Status* found = &statuses.front();
  for (const Status& status : statuses) {
    if (status.ok()) continue;
    if (found->ok()) found = &status;
    const ErrorCode code = status.error().code;
    if (code != ErrorCode::kPeerError && code != ErrorCode::kPeerLost) return status;
  }
  return *found;
}

}  // namespace

LocalGroup::LocalGroup(int world) {
  if (world < 2 || world > kMostRanks) throw_error(out_of_range_world(world));
  const Communicator::Options options;
  for (auto& transport : make_local_group(world, Communicator::slot_bytes(options))) {
    ranks_.emplace_back(std::move(transport), options);
  }
}

py::dict LocalGroup::all_reduce(const std::vector<py::object>& arrays, const std::string& dtype,
                                const std::vector<std::uint64_t>& part_counts,
                                const std::string& codec, std::uint64_t step) {
  if (arrays.size() != ranks_.size()) throw_error(wrong_array_count(arrays.size(), ranks_.size()));
  CollectiveOptions options;
  options.codec = value_or_throw(CodecSpec::parse(codec));
  options.step = step;
  options.deadline = kDeadline;
  const DType type = dtype_from_name(dtype);
  const std::vector<Buffer> buffers = open_buffers(arrays, /*writable=*/true);
  std::vector<TensorView> views;
  for (const Buffer& buffer : buffers) {
    views.push_back({buffer.data(), value_count(buffer, type), type});
  }
  std::vector<PartLayout> parts;
  for (const std::uint64_t count : part_counts) {
    parts.push_back({.values = count, .tensor = static_cast<std::uint32_t>(parts.size())});
  }
  std::vector<CollectiveStats> stats(ranks_.size());
  std::vector<Status> statuses(ranks_.size());
  {
    const py::gil_scoped_release release;
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        statuses[rank] = ranks_[rank].all_reduce(views[rank], parts, options, &stats[rank]);
      });
    }
  }  // the threads are joined, then the GIL is taken
  ok_or_throw(cause(statuses));
  CollectiveStats total;
  for (const CollectiveStats& one : stats) total.add(one);
  using py::operator""_a;
  return py::dict("raw_bytes"_a = total.raw_bytes_out, "bytes_out"_a = total.encoded_bytes_out);
}

void define_local_group(py::module_& module) {
  py::class_<LocalGroup>(module, "LocalGroup",
                         "Ranks as threads of this process; for gradwire.compare.")
      .def(py::init<int>(), py::arg("world"))
      .def("all_reduce", &LocalGroup::all_reduce, py::arg("arrays"), py::arg("dtype"),
           py::arg("part_counts"), py::arg("codec"), py::arg("step") = 0,
           "Replaces each rank's buffer by the mean over all, in place.")
      .def_property_readonly("world", &LocalGroup::world);
}

}  // namespace gradwire::internal
