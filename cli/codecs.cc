// gradwire codecs
#include <cstdio>
#include <string>
#include <vector>

#include "gradwire/codec.h"
#include "output.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

std::vector<std::string> dtype_list(const CodecDescription& codec) {
  std::vector<std::string> names;
  for (const DType dtype : codec.dtypes) names.emplace_back(dtype_name(dtype));
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Status run_codecs(const CodecsArguments& arguments) {
  OrderedJson results = OrderedJson::array();
  const std::string target(simd_target());
  for (const CodecDescription& codec : codecs()) {
    const std::vector<std::string> examples(codec.examples.begin(), codec.examples.end());
    if (arguments.json) {
      results.push_back({{"name", codec.name},
                         {"id", static_cast<unsigned>(codec.id)},
                         {"summary", codec.summary},
                         {"parameters", codec.parameters},
                         {"bound", codec.bound},
                         {"dtypes", dtype_list(codec)},
                         {"examples", examples},
                         {"target", target}});
      continue;
    }
    std::printf("%s: %s\n", std::string(codec.name).c_str(), std::string(codec.summary).c_str());
    if (!codec.parameters.empty()) {
      std::printf("  parameters  %s\n", std::string(codec.parameters).c_str());
    }
    std::printf("  bound       %s\n  types       %s\n  examples    %s\n  kernels     %s\n",
                std::string(codec.bound).c_str(), joined(dtype_list(codec)).c_str(),
                joined(examples).c_str(), target.c_str());
  }
  if (arguments.json) print_results(results);
  return {};
}

}  // namespace gradwire::cli
