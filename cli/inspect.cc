// gradwire inspect FILE
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "failure.h"
#include "gradwire/codec.h"
#include "gw_file.h"
#include "output.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

double ratio_of(const FrameInfo& info) {
  const double raw =
      static_cast<double>(info.value_count) * static_cast<double>(dtype_size(info.dtype));
  return raw / static_cast<double>(info.encoded_length);
}

OrderedJson context_json(const FrameContext& context) {
  return {{"op", op_name(context.op)},
          {"phase", phase_name(context.phase)},
          {"reduction", reduction_name(context.reduction)},
          {"schedule", schedule_name(context.schedule)},
          {"world", context.world},
          {"sender", context.sender},
          {"group_id", context.group_id},
          {"step", context.step},
          {"sequence", context.sequence},
          {"segment", context.segment},
          {"segment_count", context.segment_count},
          {"first_value", context.first_value}};
}

OrderedJson parts_json(const GwFrame& frame) {
  OrderedJson parts = OrderedJson::array();
  for (const Tensor& tensor : frame.tensors) {
    parts.push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"values", tensor.count}});
  }
  return parts;
}

OrderedJson blocks_json(const FrameInfo& info) {
  OrderedJson blocks = OrderedJson::array();
  for (const BlockInfo& block : info.blocks) {
    blocks.push_back({{"values", block.values},
                      {"length", block.length},
                      {"kind", block.kind},
                      {"lanes", block.lanes},
                      {"plane_bytes", block.plane_bytes},
                      {"own_table", block.own_table},
                      {"outliers", block.outliers}});
  }
  return blocks;
}

OrderedJson frame_json(const std::string& path, const GwFile& file, std::size_t number) {
  const GwFrame& frame = file.frames[number];
  const FrameInfo& info = frame.info;
  OrderedJson json = {{"file", path},
                      {"format", file.format},
                      {"frame", number},
                      {"version", info.version},
                      {"dtype", dtype_name(info.dtype)},
                      {"codec", info.codec.to_string()},
                      {"values", info.value_count},
                      {"header_length", info.header_length},
                      {"encoded_length", info.encoded_length},
                      {"ratio", ratio_of(info)}};
  json.update(context_json(info.context));
  json["parts"] = parts_json(frame);
  json["blocks"] = blocks_json(info);
  return json;
}

void print_context(const FrameContext& context) {
  std::printf("  %s %s %s, rank %u of %u, segment %u of %u, step %llu, sequence %llu\n",
              std::string(op_name(context.op)).c_str(),
              std::string(phase_name(context.phase)).c_str(),
              std::string(reduction_name(context.reduction)).c_str(), context.sender, context.world,
              context.segment, context.segment_count, static_cast<unsigned long long>(context.step),
              static_cast<unsigned long long>(context.sequence));
}

void print_blocks(const FrameInfo& info) {
  Table table({"  block", "kind", "values", "bytes", "lanes", "plane", "table", "outliers"});
  for (std::size_t i = 0; i < info.blocks.size(); ++i) {
    const BlockInfo& block = info.blocks[i];
    table.add({"  " + std::to_string(i), std::string(block.kind), std::to_string(block.values),
               std::to_string(block.length), std::to_string(block.lanes),
               std::to_string(block.plane_bytes), block.own_table ? "own" : "-",
               std::to_string(block.outliers)});
  }
  table.print(2);
}

void print_frame(const GwFrame& frame, std::size_t number, bool blocks) {
  const FrameInfo& info = frame.info;
  std::map<std::string_view, std::size_t> kinds;
  for (const BlockInfo& block : info.blocks) ++kinds[block.kind];
  std::string kinds_text;
  for (const auto& [kind, count] : kinds) {
    kinds_text +=
        (kinds_text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(kind);
  }
  if (kinds.empty()) kinds_text = "none";
  std::printf("frame %zu: version %u, %s, codec %s\n", number, info.version,
              std::string(dtype_name(info.dtype)).c_str(), info.codec.to_string().c_str());
  std::printf("  %llu values in %zu parts, %llu bytes (header %llu), ratio %.3f, blocks: %s\n",
              static_cast<unsigned long long>(info.value_count), info.part_counts.size(),
              static_cast<unsigned long long>(info.encoded_length),
              static_cast<unsigned long long>(info.header_length), ratio_of(info),
              kinds_text.c_str());
  if (info.context.op != Op::kNone) print_context(info.context);
  if (!frame.tensors.empty()) {
    Table table({"  part", "shape", "values"});
    for (const Tensor& tensor : frame.tensors) {
      table.add({"  " + tensor.name, shape_text(tensor.shape), std::to_string(tensor.count)});
    }
    table.print(2);
  }
  if (blocks) print_blocks(info);
}

}  // namespace

Status run_inspect(const InspectArguments& arguments) {
  const Result<GwFile> file = read_gw_file(arguments.file);
  if (!file.ok()) return at(arguments.file, file.error());
  const GwFile& gw = *file;
  if (arguments.json) {
    OrderedJson results = OrderedJson::array();
    for (std::size_t i = 0; i < gw.frames.size(); ++i) {
      results.push_back(frame_json(arguments.file, gw, i));
    }
    print_results(results);
    return {};
  }
  std::printf("%s: format %s, %zu bytes, %zu frames\n", arguments.file.c_str(),
              gw.format.empty() ? "none" : printable(gw.format).c_str(), gw.input.bytes().size(),
              gw.frames.size());
  for (std::size_t i = 0; i < gw.frames.size(); ++i) {
    print_frame(gw.frames[i], i, arguments.blocks);
  }
  return {};
}

}  // namespace gradwire::cli
