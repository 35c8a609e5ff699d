// Checks the kernels on all bit patterns: see usage().
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "exhaustive/workers.h"
#include "support/run_record.h"

namespace gradwire::test {
namespace {

constexpr char kUsage[] =
    "usage: gradwire_exhaustive [--patterns N] [--seconds S] [--jobs J] [--seed N] [--case TEXT]\n"
    "                           [--result FILE] [--list] [--self-test]\n"
    "Checks quantizers and codecs on all bit patterns of float32, float16 and bfloat16, on every\n"
    "vector target of this machine; and random groups and collectives.\n"
    "  --patterns N   a stratified sample of about N patterns for each case; default: all\n"
    "  --seed N       of the sample and of what is random; default: another each time\n"
    "  --seconds S    stop after that time; what was not done is said\n"
    "  --case TEXT    only cases whose name contains TEXT; may be repeated\n"
    "  --result FILE  append one line of JSON for each case\n"
    "Exit status: 0 nothing found, 1 a violation, 2 wrong usage.\n";

struct Options {
  Plan plan;
  double seconds = 1e9;
  std::vector<std::string> cases;
  std::string result;
  bool list = false;
  bool self_test = false;
};

template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Options> read_options(int count, char** arguments) {
  Options options;
  std::random_device device;
  options.plan.seed = (std::uint64_t{device()} << 32 | device()) >> 16;  // exact in JSON
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--list" || name == "--self-test") {
      (name == "--list" ? options.list : options.self_test) = true;
      continue;
    }
    if (i + 1 == count) return std::nullopt;
    const std::string_view value = arguments[++i];
    bool good = true;
    if (name == "--patterns") {
      good = read_number(value, &options.plan.patterns);
    } else if (name == "--seconds") {
      good = read_number(value, &options.seconds);
    } else if (name == "--jobs") {
      good = read_number(value, &options.plan.jobs) && options.plan.jobs > 0;
    } else if (name == "--seed") {
      good = read_number(value, &options.plan.seed);
    } else if (name == "--case") {
      options.cases.emplace_back(value);
    } else if (name == "--result") {
      options.result = value;
    } else {
      good = false;
    }
    if (!good) return std::nullopt;
  }
  return options;
}

bool wanted(const Options& options, const ExhaustiveCase& one) {
  if (options.cases.empty()) return true;
  for (const std::string& text : options.cases) {
    if (one.name.find(text) != std::string::npos) return true;
  }
  return false;
}

std::string target_text(const ExhaustiveCase& one) {
  if (!one.all_targets) return std::string(internal::simd_target_name());
  std::string text = "ref";
  for (const std::string_view name : internal::simd_targets()) text += " " + std::string(name);
  return text;
}

// False if a violation was found or the result cannot be written.
bool run_and_report(const ExhaustiveCase& one, const Options& options) {
  const CaseResult result = run_case(one, options.plan);
  const RunRecord record{.kind = one.kind,
                         .promise = one.promise,
                         .name = one.name,
                         .count = result.chunks * one.patterns,
                         .planned = one.chunks * one.patterns,
                         .unit = one.unit,
                         .seed = options.plan.patterns > 0 || one.random() ? options.plan.seed : 0,
                         .seconds = result.seconds,
                         .target = target_text(one),
                         .finding = result.violation};
  const char* const verdict = !result.violation.empty() ? "VIOLATED"
                              : result.complete()       ? "holds"
                                                        : "stopped";
  std::printf("%-52s %12llu of %-12llu %8.1f s  %s\n", one.name.c_str(),
              static_cast<unsigned long long>(record.count),
              static_cast<unsigned long long>(record.planned), result.seconds, verdict);
  if (!result.violation.empty()) std::printf("    %s\n", result.violation.c_str());
  std::fflush(stdout);
  const bool begun = result.chunks > 0 || !result.violation.empty();
  if (begun && !append_record(options.result, record)) {
    std::fprintf(stderr, "cannot write %s\n", options.result.c_str());
    return false;
  }
  return result.violation.empty();
}

// Does a violation, or a crash, of one chunk come to light; is every stratum visited?
int self_test(Plan plan) {
  plan.jobs = 2;
  plan.patterns = 0;
  plan.end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ExhaustiveCase one{.name = "self-test", .promise = "", .chunks = 512, .patterns = 1};
  one.make_check = [] {
    return [](std::uint64_t chunk) { return std::string(chunk == 311 ? "planted" : ""); };
  };
  const bool violation_found = run_case(one, plan).violation == "chunk 311: planted";
  one.make_check = [] {
    return [](std::uint64_t chunk) { return chunk == 311 ? std::abort(), "" : std::string(); };
  };
  const bool crash_found = !run_case(one, plan).violation.empty();
  one.make_check = [] { return [](std::uint64_t) { return std::string(); }; };
  const CaseResult all = run_case(one, plan);
  plan.patterns = 100;
  const CaseResult sample = run_case(one, plan);
  const bool counted = all.complete() && all.chunks == 512 && sample.chunks == 100;
  const bool good = violation_found && crash_found && all.violation.empty() && counted;
  std::printf("self-test: violation %s, crash %s, counts %s\n",
              violation_found ? "found" : "MISSED", crash_found ? "found" : "MISSED",
              counted ? "right" : "WRONG");
  return good ? 0 : 1;
}

int run(int count, char** arguments) {
  std::optional<Options> options = read_options(count, arguments);
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options->self_test) return self_test(options->plan);
  std::vector<ExhaustiveCase> cases;
  add_float32_cases(&cases);
  add_half_cases(&cases);
  add_half_near_lossless_cases(&cases);
  add_half_block_cases(&cases);
  add_stochastic_cases(&cases);
  add_codec_cases(&cases);
  add_random_cases(options->plan.seed, &cases);
  std::erase_if(cases, [&](const ExhaustiveCase& one) { return !wanted(*options, one); });
  if (cases.empty()) {
    std::fputs("no case has such a name; see --list\n", stderr);
    return 2;
  }
  if (options->list) {
    for (const ExhaustiveCase& one : cases) std::printf("%s\n", one.name.c_str());
    return 0;
  }
  options->plan.end =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * std::min(options->seconds, 1e9)));
  std::printf("seed %llu\n", static_cast<unsigned long long>(options->plan.seed));
  bool clean = true;
  for (const ExhaustiveCase& one : cases) clean = run_and_report(one, *options) && clean;
  return clean ? 0 : 1;
}

}  // namespace
}  // namespace gradwire::test

int main(int count, char** arguments) { return gradwire::test::run(count, arguments); }
