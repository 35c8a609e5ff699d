#include "frame_dict.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace py = pybind11;

namespace gradwire::internal {
namespace {

void add_context(py::dict& dict, const FrameContext& context) {
  dict["op"] = op_name(context.op);
  dict["phase"] = phase_name(context.phase);
  dict["reduction"] = reduction_name(context.reduction);
  dict["schedule"] = schedule_name(context.schedule);
  dict["world"] = context.world;
  dict["sender"] = context.sender;
  dict["group_id"] = context.group_id;
  dict["step"] = context.step;
  dict["sequence"] = context.sequence;
  dict["segment"] = context.segment;
  dict["segment_count"] = context.segment_count;
  dict["first_value"] = context.first_value;
}

py::list block_list(const FrameInfo& info) {
  py::list blocks;
  for (const BlockInfo& block : info.blocks) {
    py::dict entry;
    entry["values"] = block.values;
    entry["length"] = block.length;
    entry["kind"] = block.kind;
    entry["lanes"] = block.lanes;
    entry["plane_bytes"] = block.plane_bytes;
    entry["own_table"] = block.own_table;
    entry["outliers"] = block.outliers;
    blocks.append(std::move(entry));
  }
  return blocks;
}

}  // namespace

py::dict frame_dict(const FrameInfo& info) {
  py::dict dict;
  dict["version"] = info.version;
  dict["dtype"] = dtype_name(info.dtype);
  dict["codec"] = info.codec.to_string();
  dict["values"] = info.value_count;
  dict["header_length"] = info.header_length;
  dict["encoded_length"] = info.encoded_length;
  add_context(dict, info.context);
  dict["part_counts"] = info.part_counts;
  dict["blocks"] = block_list(info);
  dict["metadata"] = py::bytes(info.metadata);
  return dict;
}

py::list codec_list() {
  py::list list;
  for (const CodecDescription& codec : codecs()) {
    std::vector<std::string> dtypes;
    for (const DType dtype : codec.dtypes) dtypes.emplace_back(dtype_name(dtype));
    py::dict entry;
    entry["name"] = codec.name;
    entry["id"] = static_cast<unsigned>(codec.id);
    entry["summary"] = codec.summary;
    entry["parameters"] = codec.parameters;
    entry["bound"] = codec.bound;
    entry["dtypes"] = dtypes;
    entry["examples"] = std::vector<std::string>(codec.examples.begin(), codec.examples.end());
    entry["target"] = simd_target();
    list.append(std::move(entry));
  }
  return list;
}

}  // namespace gradwire::internal
