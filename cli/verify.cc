// gradwire verify FILE
#include <cstdio>

#include "failure.h"
#include "files.h"
#include "gradwire/codec.h"
#include "gw_file.h"
#include "output.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

Status verify_frames(const GwFile& file, bool show_progress) {
  Progress progress("verify", file.input.bytes().size(), show_progress);
  for (std::size_t i = 0; i < file.frames.size(); ++i) {
    const Status status = verify(file.frames[i].bytes);
    if (!status.ok()) return at("frame " + std::to_string(i), named(status.error()));
    progress.add(file.frames[i].bytes.size());
  }
  return {};
}

}  // namespace

Status run_verify(const VerifyArguments& arguments) {
  const Result<GwFile> file = read_gw_file(arguments.file);
  const Status status = file.ok() ? verify_frames(*file, arguments.progress) : Status(file.error());
  std::uint64_t values = 0;
  std::size_t frames = 0;
  std::size_t bytes = 0;
  if (file.ok()) {
    const GwFile& gw = *file;
    for (const GwFrame& frame : gw.frames) values += frame.info.value_count;
    frames = gw.frames.size();
    bytes = gw.input.bytes().size();
  }
  if (arguments.json) {
    OrderedJson result = {{"file", arguments.file}, {"ok", status.ok()}, {"frames", frames},
                          {"values", values},       {"bytes", bytes},    {"error", nullptr}};
    if (!status.ok()) result["error"] = status.error().message;
    print_results(OrderedJson::array({result}));
  } else if (status.ok()) {
    std::printf("%s: fine, %zu frames, %llu values, %zu bytes\n", arguments.file.c_str(), frames,
                static_cast<unsigned long long>(values), bytes);
  }
  if (!status.ok()) return at(arguments.file, status.error());
  return {};
}

}  // namespace gradwire::cli
