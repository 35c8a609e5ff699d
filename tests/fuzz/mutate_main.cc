// Decodes damaged frames, as many as there is time for: see kUsage.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/mutate_run.h"
#include "gradwire/codec.h"
#include "support/run_record.h"

namespace gradwire::test {
namespace {

constexpr char kUsage[] =
    "usage: gradwire_mutate [--seconds S] [--frames N] [--seed N] [--first N] [--save FILE]\n"
    "                       [--unmended] [--result FILE] [--self-test]\n"
    "Damages frames of every codec, mends most of their checksums, and decodes them in memory\n"
    "between guard pages. Errors are expected; a crash, a hang, an impossible error code, two\n"
    "decodes that differ are findings.\n"
    "  --unmended     mend nothing: each damaged frame must be refused\n"
    "  --seed N       of the run; default: from the clock\n"
    "  --first N      begin with frame N: with --frames 1 a finding again\n"
    "  --save FILE    where the frame of a finding goes; default: finding.gw\n"
    "  --result FILE  append one line of JSON\n"
    "Exit status: 0 nothing found, 1 a finding, 2 wrong usage.\n";

struct Options {
  MutateRun run;
  std::string save = "finding.gw";
  std::string result;
  bool self_test = false;
};

template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Options> read_options(int count, char** arguments) {
  Options options;
  options.run.seed = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1));
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--self-test" || name == "--unmended") {
      (name == "--self-test" ? options.self_test : options.run.unmended) = true;
      continue;
    }
    if (i + 1 == count) return std::nullopt;
    const std::string_view value = arguments[++i];
    bool good = true;
    if (name == "--seconds") {
      good = read_number(value, &options.run.seconds);
    } else if (name == "--frames") {
      good = read_number(value, &options.run.most_frames);
    } else if (name == "--seed") {
      good = read_number(value, &options.run.seed);
    } else if (name == "--first") {
      good = read_number(value, &options.run.first);
    } else if (name == "--save") {
      options.save = value;
    } else if (name == "--result") {
      options.result = value;
    } else {
      good = false;
    }
    if (!good) return std::nullopt;
  }
  return options;
}

void print_outcomes(const MutateResult& result) {
  for (std::size_t code = 0; code < result.outcomes.size(); ++code) {
    if (result.outcomes[code] == 0) continue;
    const std::string name =
        code == 0 ? "decoded" : std::string(error_name(static_cast<ErrorCode>(code)));
    std::printf(
        "  %-20s %12llu  %5.1f %%\n", name.c_str(),
        static_cast<unsigned long long>(result.outcomes[code]),
        100.0 * static_cast<double>(result.outcomes[code]) / static_cast<double>(result.frames));
  }
}

int run_and_report(const Options& options) {
  const Corpus corpus = make_corpus();
  std::printf("seed %llu, %zu small and %zu large frames\n",
              static_cast<unsigned long long>(options.run.seed), corpus.small.size(),
              corpus.large.size());
  const MutateResult result = run_mutations(corpus, options.run, make_guarded_check);
  const auto frames = static_cast<unsigned long long>(result.frames);
  std::printf("%llu frames in %.1f s, %.0f a second\n", frames, result.seconds,
              static_cast<double>(frames) / result.seconds);
  print_outcomes(result);
  if (!result.finding.empty()) {
    const std::vector<std::byte> frame = damaged_frame(corpus, options.run, result.number);
    std::ofstream file(options.save, std::ios::binary);
    file.write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
    std::printf("FOUND: %s, at --seed %llu --first %llu --frames 1%s; the frame is in %s\n",
                result.finding.c_str(), static_cast<unsigned long long>(options.run.seed),
                static_cast<unsigned long long>(result.number),
                options.run.unmended ? " --unmended" : "", options.save.c_str());
  }
  const bool unmended = options.run.unmended;
  const RunRecord record{.kind = unmended ? "corrupt" : "mutate",
                         .promise = unmended ? "W3" : "W1",
                         .name = unmended ? "damaged frames, checksums as they were"
                                          : "damaged frames between guard pages",
                         // A change may leave the bytes as they were; those are no damage.
                         .count = result.frames - (unmended ? result.outcomes[0] : 0),
                         .unit = "frames",
                         .seed = options.run.seed,
                         .seconds = result.seconds,
                         .target = std::string(simd_target()),
                         .finding = result.finding};
  if (!append_record(options.result, record)) {
    std::fprintf(stderr, "cannot write %s\n", options.result.c_str());
    return 1;
  }
  return result.finding.empty() ? 0 : 1;
}

// Would a read behind the frame, a read before it, and a loop without end be found, and where?
int self_test() {
  const Corpus corpus = make_corpus();
  MutateRun run{.seed = 5, .most_frames = 1000, .seconds = 60, .hang_seconds = 1};
  const auto found_at = [&](std::uint64_t number, FrameCheck check) {
    const MutateResult result = run_mutations(corpus, run, [check] { return check; });
    return !result.finding.empty() && result.number == number;
  };
  const auto touch = [](const std::byte* at) {
    return static_cast<int>(*static_cast<volatile const std::byte*>(at));
  };
  const bool behind = found_at(40, [&](std::span<const std::byte> frame, std::uint64_t n) {
    return n == 40 ? touch(frame.data() + frame.size()) : 0;
  });
  const bool before = found_at(43, [&](std::span<const std::byte> frame, std::uint64_t n) {
    return n == 43 ? touch(frame.data() - 1) : 0;
  });
  const bool hang = found_at(44, [](std::span<const std::byte>, std::uint64_t n) {
    for (volatile bool forever = n == 44; forever;) {
    }
    return 0;
  });
  MutateRun blind = run;
  blind.unmended = true;
  const FrameCheck accept = [](std::span<const std::byte>, std::uint64_t) { return 0; };
  const bool unnoticed = !run_mutations(corpus, blind, [&] { return accept; }).finding.empty();
  const bool clean = run_mutations(corpus, run, make_guarded_check).frames == 1000;
  std::printf("self-test: read behind %d, before %d, hang %d, unnoticed damage %d, clean run %d\n",
              behind, before, hang, unnoticed, clean);
  return behind && before && hang && unnoticed && clean ? 0 : 1;
}

}  // namespace
}  // namespace gradwire::test

int main(int count, char** arguments) {
  const auto options = gradwire::test::read_options(count, arguments);
  if (!options) {
    std::fputs(gradwire::test::kUsage, stderr);
    return 2;
  }
  return options->self_test ? gradwire::test::self_test()
                            : gradwire::test::run_and_report(*options);
}
