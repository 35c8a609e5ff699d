// The command line of Gradwire. Exit status: 0 fine, 1 the data is bad (named on stderr), 2 wrong
// usage.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>

#include "failure.h"
#include "gradwire/version.h"
#include "verbs.h"

namespace gradwire::cli {
namespace {

// What the chosen verb will run once the line has been parsed.
struct Arguments {
  EncodeArguments encode;
  DecodeArguments decode;
  InspectArguments inspect;
  VerifyArguments verify;
  CodecsArguments codecs;
  BenchArguments bench;
  std::function<Status()> run;
};

void add_threads(CLI::App* verb, unsigned* threads) {
  verb->add_option("--threads", *threads, "threads that share the blocks; 0: one for each CPU")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
}

void add_encode(CLI::App& app, Arguments& all) {
  EncodeArguments& arguments = all.encode;
  CLI::App* verb = app.add_subcommand("encode", "Compress the tensors of a file");
  verb->add_option("IN", arguments.in, ".safetensors, .npy, or raw values with --dtype")
      ->required();
  verb->add_option("OUT", arguments.out, "encoded file, usually .gw")->required();
  verb->add_option("--codec", arguments.codec, "name or name:key=value,... (see gradwire codecs)")
      ->required();
  verb->add_option("--dtype", arguments.dtype, "type of raw values: float32, bfloat16, ...");
  verb->add_option("--fallback", arguments.fallback,
                   "codec for floating types that --codec does not take, e.g. lossless");
  verb->add_option("--frame-bytes", arguments.frame_bytes,
                   "a frame ends behind the tensor with which it holds so much; k, M, G are powers "
                   "of 1000")
      ->capture_default_str();
  add_threads(verb, &arguments.threads);
  verb->add_flag("--progress", arguments.progress, "show progress even if stderr is no terminal");
  verb->add_flag("--json", arguments.json, "print sizes as JSON");
  verb->footer("Integers, bool and float8 are kept as they are.");
  verb->callback([&all] { all.run = [&all] { return run_encode(all.encode); }; });
}

void add_decode(CLI::App& app, Arguments& all) {
  DecodeArguments& arguments = all.decode;
  CLI::App* verb = app.add_subcommand("decode", "Restore the file that was encoded");
  verb->add_option("IN", arguments.in, "encoded file")->required();
  verb->add_option("OUT", arguments.out, "in the original format; .raw and .bin: values only")
      ->required();
  add_threads(verb, &arguments.threads);
  verb->add_flag("--progress", arguments.progress, "show progress even if stderr is no terminal");
  verb->callback([&all] { all.run = [&all] { return run_decode(all.decode); }; });
}

void add_inspect(CLI::App& app, Arguments& all) {
  InspectArguments& arguments = all.inspect;
  CLI::App* verb = app.add_subcommand("inspect", "Show headers, tensors and blocks of a file");
  verb->add_option("FILE", arguments.file, "encoded file")->required();
  verb->add_flag("--blocks", arguments.blocks, "list the blocks too");
  verb->add_flag("--json", arguments.json, "print everything as JSON");
  verb->callback([&all] { all.run = [&all] { return run_inspect(all.inspect); }; });
}

void add_verify(CLI::App& app, Arguments& all) {
  VerifyArguments& arguments = all.verify;
  CLI::App* verb = app.add_subcommand("verify", "Check all checksums of a file");
  verb->add_option("FILE", arguments.file, "encoded file")->required();
  verb->add_flag("--progress", arguments.progress, "show progress even if stderr is no terminal");
  verb->add_flag("--json", arguments.json, "print the result as JSON");
  verb->callback([&all] { all.run = [&all] { return run_verify(all.verify); }; });
}

void add_codecs(CLI::App& app, Arguments& all) {
  CLI::App* verb = app.add_subcommand("codecs", "List the codecs, their parameters and bounds");
  verb->add_flag("--json", all.codecs.json, "print the list as JSON");
  verb->callback([&all] { all.run = [&all] { return run_codecs(all.codecs); }; });
}

void add_bench(CLI::App& app, Arguments& all) {
  BenchArguments& arguments = all.bench;
  CLI::App* verb = app.add_subcommand("bench", "Measure ratio, error and speed on files");
  verb->add_option("FILE", arguments.files, ".safetensors, .npy, or raw values with --dtype")
      ->required();
  verb->add_option("--codec", arguments.codecs, "may be repeated")
      ->allow_extra_args(false)
      ->required();
  verb->add_option("--dtype", arguments.dtype, "type of raw values: float32, bfloat16, ...");
  verb->add_option("--min-bytes", arguments.min_bytes,
                   "repeat the input up to this size; k, M, G are powers of 1000");
  verb->add_option("--runs", arguments.runs, "measurements, of which the median counts")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  add_threads(verb, &arguments.threads);
  verb->add_flag("--only", arguments.only, "without the rows cast:dtype=bf16 and int8");
  verb->add_flag("--json", arguments.json, "print the results as JSON");
  verb->footer(
      "All tensors of one type are one call. GB/s are 10^9 bytes of the original per second, of "
      "the\n"
      "thread's processor time, or of time on the clock with several threads; memcpy of the same\n"
      "bytes on one thread is measured beside each.");
  verb->callback([&all] { all.run = [&all] { return run_bench(all.bench); }; });
}

void print_error(const std::string& text) { std::fputs(error_line(text).c_str(), stderr); }

int parse_and_run(int argc, char** argv) {
  CLI::App app("Compresses gradients and other tensors; restores, checks and measures them.",
               "gradwire");
  app.set_version_flag("--version", "gradwire " GRADWIRE_VERSION_STRING);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 fine, 1 the data is bad, 2 wrong usage.\n"
      "gradwire VERB --help explains a verb.");
  Arguments all;
  add_encode(app, all);
  add_decode(app, all);
  add_inspect(app, all);
  add_verify(app, all);
  add_codecs(app, all);
  add_bench(app, all);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    print_error(std::string(error.what()) + " (gradwire --help)");
    return kExitBadUsage;
  }
  const Status status = all.run();
  if (!status.ok()) {
    print_error(status.error().message);
    return exit_status(status.error());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    print_error("cannot write to stdout");
    return kExitBadData;
  }
  return kExitFine;
}

}  // namespace
}  // namespace gradwire::cli

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(), not the end
  try {
    return gradwire::cli::parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("gradwire: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gradwire: internal error: %s\n", error.what());
  }
  return gradwire::cli::kExitBadData;
}
