// The verbs of the command line. Each prints its results on stdout and returns an error that
// main() prints and turns into the exit status.
#ifndef GRADWIRE_CLI_VERBS_H_
#define GRADWIRE_CLI_VERBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gradwire/status.h"

namespace gradwire::cli {

struct EncodeArguments {
  std::string in;
  std::string out;
  std::string codec;
  std::string dtype;     // of raw values
  std::string fallback;  // codec for floating types that `codec` does not take
  std::string frame_bytes = "256M";
  unsigned threads = 1;
  bool progress = false;
  bool json = false;
};
Status run_encode(const EncodeArguments& arguments);

struct DecodeArguments {
  std::string in;
  std::string out;
  unsigned threads = 1;
  bool progress = false;
};
Status run_decode(const DecodeArguments& arguments);

struct InspectArguments {
  std::string file;
  bool blocks = false;
  bool json = false;
};
Status run_inspect(const InspectArguments& arguments);

struct VerifyArguments {
  std::string file;
  bool progress = false;
  bool json = false;
};
Status run_verify(const VerifyArguments& arguments);

struct CodecsArguments {
  bool json = false;
};
Status run_codecs(const CodecsArguments& arguments);

struct BenchArguments {
  std::vector<std::string> files;
  std::vector<std::string> codecs;
  std::string dtype;      // of raw values
  std::string min_bytes;  // "100M"
  int runs = 5;
  unsigned threads = 1;
  bool only = false;  // without the codecs that every table shows
  bool json = false;
};
Status run_bench(const BenchArguments& arguments);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_VERBS_H_
