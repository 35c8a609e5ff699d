// gradwire encode IN OUT --codec SPEC
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "failure.h"
#include "files.h"
#include "gradwire/codec.h"
#include "gw_file.h"
#include "numbers.h"
#include "output.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

struct FramePlan {
  std::size_t begin = 0;  // tensors
  std::size_t end = 0;
  std::uint64_t bytes = 0;
  DType dtype = DType::kFloat32;
  CodecSpec codec;
};

struct Totals {
  std::uint64_t raw = 0;
  std::uint64_t encoded = 0;
};

// The codec for one tensor: integers, bool and float8 travel as they are.
Result<CodecSpec> codec_for(const Tensor& tensor, const CodecSpec& codec,
                            const CodecSpec* fallback) {
  const Status takes = check_dtype(codec, tensor.dtype);
  if (takes.ok()) return codec;
  if (!is_compressible(tensor.dtype)) return CodecSpec{};
  if (fallback != nullptr && check_dtype(*fallback, tensor.dtype).ok()) return *fallback;
  Error error = takes.error();
  error.message = "tensor " + tensor.name + " is " + std::string(dtype_name(tensor.dtype)) + ": " +
                  error.message + "; --fallback lossless keeps such tensors exactly";
  return error;
}

// Frames end at the first tensor border after `frame_bytes`, so that memory and the steps of the
// progress line stay bounded.
Result<std::vector<FramePlan>> plan_frames(const std::vector<Tensor>& tensors,
                                           const CodecSpec& codec, const CodecSpec* fallback,
                                           std::uint64_t frame_bytes) {
  std::vector<FramePlan> plans;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Result<CodecSpec> chosen = codec_for(tensors[i], codec, fallback);
    if (!chosen.ok()) return chosen.error();
    if (plans.empty() || plans.back().dtype != tensors[i].dtype ||
        plans.back().bytes >= frame_bytes) {
      plans.push_back({.begin = i, .end = i, .dtype = tensors[i].dtype, .codec = *chosen});
    }
    plans.back().end = i + 1;
    plans.back().bytes += tensors[i].bytes.size();
  }
  // A file without tensors still has a frame, for what else has to be restored.
  if (plans.empty()) plans.push_back({.codec = codec});
  return plans;
}

Status write_frame(const TensorFile& file, const FramePlan& plan, const std::string& metadata,
                   Workspace& workspace, OutputFile& out, Totals& totals) {
  std::vector<Part> parts;
  std::uint64_t values = 0;
  for (std::size_t i = plan.begin; i < plan.end; ++i) {
    const Tensor& tensor = file.tensors[i];
    parts.push_back({.values = {tensor.bytes.data(), tensor.count, tensor.dtype},
                     .tensor = static_cast<std::uint32_t>(i)});
    values += tensor.count;
  }
  EncodeOptions options;
  options.metadata = metadata;
  const std::uint64_t capacity =
      max_encoded_size(plan.codec, plan.dtype, values, parts.size(), metadata.size());
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  const std::span<std::byte> space(buffer.get(), capacity);
  const Result<std::size_t> length = encode(plan.codec, parts, options, space, workspace);
  if (!length.ok()) return named(length.error());
  totals.raw += plan.bytes;
  totals.encoded += *length;
  return out.write(space.first(*length));
}

void print_totals(const EncodeArguments& arguments, const TensorFile& file, std::size_t frames,
                  const Totals& totals) {
  const double ratio = static_cast<double>(totals.raw) / static_cast<double>(totals.encoded);
  if (arguments.json) {
    const OrderedJson result = {{"file", arguments.in},
                                {"out", arguments.out},
                                {"codec", arguments.codec},
                                {"tensors", file.tensors.size()},
                                {"frames", frames},
                                {"bytes", totals.raw},
                                {"encoded_bytes", totals.encoded},
                                {"ratio", ratio}};
    print_results(OrderedJson::array({result}));
    return;
  }
  std::printf("%s: %zu tensors, %llu -> %llu bytes, ratio %.3f\n", arguments.out.c_str(),
              file.tensors.size(), static_cast<unsigned long long>(totals.raw),
              static_cast<unsigned long long>(totals.encoded), ratio);
}

Status encode_file(const EncodeArguments& arguments, const TensorFile& file,
                   const std::vector<FramePlan>& plans) {
  Result<OutputFile> out = OutputFile::create(arguments.out, arguments.in);
  if (!out.ok()) return at(arguments.out, out.error());
  std::uint64_t bytes = 0;
  for (const FramePlan& plan : plans) bytes += plan.bytes;
  Progress progress("encode", bytes, arguments.progress);
  Workspace workspace;
  const Status threads = workspace.set_threads(arguments.threads);
  if (!threads.ok()) return named(threads.error());
  Totals totals;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto tensors =
        std::span(file.tensors).subspan(plans[i].begin, plans[i].end - plans[i].begin);
    const std::string metadata = make_metadata(file, tensors, i, plans.size());
    const Status status = write_frame(file, plans[i], metadata, workspace, *out, totals);
    if (!status.ok()) return at(arguments.out, status.error());
    progress.add(plans[i].bytes);
  }
  const Status status = out->commit();
  if (!status.ok()) return at(arguments.out, status.error());
  print_totals(arguments, file, plans.size(), totals);
  return {};
}

}  // namespace

Status run_encode(const EncodeArguments& arguments) {
  const Result<CodecSpec> codec = CodecSpec::parse(arguments.codec);
  if (!codec.ok()) return at("--codec", codec.error());
  CodecSpec fallback;
  if (!arguments.fallback.empty()) {
    const Result<CodecSpec> parsed = CodecSpec::parse(arguments.fallback);
    if (!parsed.ok()) return at("--fallback", parsed.error());
    fallback = *parsed;
  }
  const Result<std::uint64_t> frame_bytes = parse_size("--frame-bytes", arguments.frame_bytes);
  if (!frame_bytes.ok()) return frame_bytes.error();
  const Result<TensorFile> file = read_tensor_file(arguments.in, arguments.dtype);
  if (!file.ok()) return at(arguments.in, file.error());
  const auto plans = plan_frames(file.value().tensors, *codec,
                                 arguments.fallback.empty() ? nullptr : &fallback, *frame_bytes);
  if (!plans.ok()) return at(arguments.in, plans.error());
  return encode_file(arguments, *file, *plans);
}

}  // namespace gradwire::cli
