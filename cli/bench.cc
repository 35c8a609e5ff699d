// gradwire bench FILE... --codec SPEC...
#include "bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "failure.h"
#include "files.h"
#include "numbers.h"
#include "output.h"
#include "tensor_file.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

// A row of the table, also of codecs that the user did not ask for.
struct Spec {
  std::string text;
  CodecSpec codec;
  bool asked = true;
};

struct Row {
  std::string file;
  std::string dtype;
  std::string codec;
  std::uint64_t values = 0;
  std::optional<double> ratio, reference_ratio, bits_per_value, entropy_bits;
  BenchError error;
  BenchMeasure measure;
};

Result<std::vector<Spec>> parse_specs(const BenchArguments& arguments) {
  std::vector<Spec> specs;
  for (const std::string& text : arguments.codecs) {
    const Result<CodecSpec> codec = CodecSpec::parse(text);
    if (!codec.ok()) return at("--codec " + text, codec.error());
    specs.push_back({.text = text, .codec = *codec});
  }
  if (arguments.only) return specs;
  for (const char* rival : {"cast:dtype=bf16", "int8"}) {
    const Result<CodecSpec> codec = CodecSpec::parse(rival);
    if (!codec.ok()) return codec.error();
    const bool asked = std::any_of(specs.begin(), specs.end(),
                                   [&](const Spec& spec) { return spec.codec == *codec; });
    if (!asked) specs.push_back({.text = rival, .codec = *codec, .asked = false});
  }
  return specs;
}

BenchInput collect(const TensorFile& file, DType dtype, std::uint64_t min_bytes) {
  BenchInput input;
  input.dtype = dtype;
  for (const Tensor& tensor : file.tensors) {
    if (tensor.dtype != dtype) continue;
    input.counts.push_back(tensor.count);
    input.values += tensor.count;
  }
  const std::uint64_t bytes = input.values * dtype_size(dtype);
  if (bytes > 0) input.copies = std::max<std::uint64_t>(1, (min_bytes + bytes - 1) / bytes);
  input.data.reserve(bytes * input.copies);
  for (std::uint64_t copy = 0; copy < input.copies; ++copy) {
    for (const Tensor& tensor : file.tensors) {
      if (tensor.dtype != dtype) continue;
      input.data.insert(input.data.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
  }
  return input;
}

Result<Row> bench_one(const std::string& path, const BenchInput& input, const Spec& spec,
                      const BenchArguments& arguments) {
  Result<BenchMeasure> measured = measure(input, spec.codec, arguments.runs, arguments.threads);
  if (!measured.ok()) return at(path + ": " + spec.text, measured.error());
  Row row;
  row.file = path;
  row.dtype = dtype_name(input.dtype);
  row.codec = spec.text;
  row.measure = std::move(*measured);
  row.values = input.values * input.copies;
  row.ratio = static_cast<double>(input.data.size()) / row.measure.encoded_bytes;
  row.bits_per_value = 8 * row.measure.encoded_bytes / static_cast<double>(row.values);
  row.error = error_of(input, row.measure.decoded, spec.codec);
  row.entropy_bits = entropy_bits(input, row.measure.decoded, spec.codec);
  if (spec.codec.id == CodecId::kLossless) row.reference_ratio = reference_ratio(input);
  row.measure.decoded = {};
  return row;
}

OrderedJson or_null(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

OrderedJson row_json(const Row& row) {
  const BenchMeasure& speed = row.measure;
  return {{"file", row.file},
          {"dtype", row.dtype},
          {"codec", row.codec},
          {"values", row.values},
          {"ratio", or_null(row.ratio)},
          {"reference_ratio", or_null(row.reference_ratio)},
          {"bits_per_value", or_null(row.bits_per_value)},
          {"entropy_bits", or_null(row.entropy_bits)},
          {"rel_l2", row.error.rel_l2},
          {"worst_tensor_rel_l2", or_null(row.error.worst_tensor_rel_l2)},
          {"max_error_over_bound", or_null(row.error.max_error_over_bound)},
          {"encode_gbps", speed.encode_gbps},
          {"decode_gbps", speed.decode_gbps},
          {"memcpy_gbps", speed.memcpy_gbps},
          {"encode_over_memcpy", speed.encode_gbps / speed.memcpy_gbps},
          {"decode_over_memcpy", speed.decode_gbps / speed.memcpy_gbps},
          {"threads", speed.threads}};
}

std::vector<std::string> row_cells(const Row& row) {
  const BenchMeasure& speed = row.measure;
  const std::string name = row.file.substr(row.file.rfind('/') + 1);
  return {name,
          row.dtype,
          row.codec,
          std::to_string(row.values),
          fixed(row.ratio, 3),
          fixed(row.reference_ratio, 3),
          fixed(row.bits_per_value, 3),
          fixed(row.entropy_bits, 3),
          scientific(row.error.rel_l2, 2),
          scientific(row.error.worst_tensor_rel_l2, 2),
          fixed(row.error.max_error_over_bound, 3),
          fixed(speed.encode_gbps, 2),
          fixed(speed.decode_gbps, 2),
          fixed(speed.memcpy_gbps, 2),
          fixed(speed.encode_gbps / speed.memcpy_gbps, 2),
          fixed(speed.decode_gbps / speed.memcpy_gbps, 2)};
}

void print_rows(const std::vector<Row>& rows, bool json) {
  if (json) {
    OrderedJson results = OrderedJson::array();
    for (const Row& row : rows) results.push_back(row_json(row));
    print_results(results);
    return;
  }
  Table table({"file", "dtype", "codec", "values", "ratio", "ref", "bits", "entropy", "rel_l2",
               "worst", "err/bound", "enc GB/s", "dec GB/s", "memcpy", "enc/mc", "dec/mc"});
  for (const Row& row : rows) table.add(row_cells(row));
  table.print(3);
}

Status bench_file(const std::string& path, const BenchArguments& arguments,
                  const std::vector<Spec>& specs, std::uint64_t min_bytes, std::vector<Row>& rows,
                  bool& any_asked) {
  const Result<TensorFile> file = read_tensor_file(path, arguments.dtype);
  if (!file.ok()) return at(path, file.error());
  bool any_float = false;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const BenchInput input = collect(*file, dtype, min_bytes);
    if (input.values == 0) continue;
    any_float = true;
    Progress progress("bench " + path, specs.size(), /*always=*/false);
    for (const Spec& spec : specs) {
      const Status takes = check_dtype(spec.codec, dtype);
      if (!takes.ok() && spec.asked) {
        std::fprintf(stderr, "gradwire: %s: %s left out: %s\n", path.c_str(), spec.text.c_str(),
                     takes.error().message.c_str());
      }
      progress.add(1);
      if (!takes.ok()) continue;
      Result<Row> row = bench_one(path, input, spec, arguments);
      if (!row.ok()) return row.error();
      rows.push_back(std::move(*row));
      any_asked = any_asked || spec.asked;
    }
  }
  if (!any_float) {
    std::fprintf(stderr, "gradwire: %s: has no values of a floating type\n", path.c_str());
  }
  return {};
}

}  // namespace

Status run_bench(const BenchArguments& arguments) {
  const Result<std::vector<Spec>> specs = parse_specs(arguments);
  if (!specs.ok()) return specs.error();
  std::uint64_t min_bytes = 0;
  if (!arguments.min_bytes.empty()) {
    const Result<std::uint64_t> parsed = parse_size("--min-bytes", arguments.min_bytes);
    if (!parsed.ok()) return parsed.error();
    min_bytes = *parsed;
  }
  std::vector<Row> rows;
  bool any_asked = false;
  for (const std::string& path : arguments.files) {
    Status status = bench_file(path, arguments, *specs, min_bytes, rows, any_asked);
    if (!status.ok()) return status;
  }
  if (!any_asked) return bad_usage("no file has values that one of the codecs takes");
  print_rows(rows, arguments.json);
  return {};
}

}  // namespace gradwire::cli
