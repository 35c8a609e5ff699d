// What a long run found, as one line of JSON for tools/ledger.py, which adds commit and machine.
#ifndef GRADWIRE_TESTS_SUPPORT_RUN_RECORD_H_
#define GRADWIRE_TESTS_SUPPORT_RUN_RECORD_H_

#include <cstdint>
#include <string>

namespace gradwire::test {

struct RunRecord {
  std::string kind = {};     // of run: "exhaustive", "mutate"
  std::string promise = {};  // of RELIABILITY.md
  std::string name = {};
  std::uint64_t count = 0;    // what was done
  std::uint64_t planned = 0;  // what would be all; 0: there is no end
  std::string unit = {};      // "patterns", "frames"
  std::uint64_t seed = 0;
  double seconds = 0;
  std::string target = {};   // vector targets
  std::string finding = {};  // empty: none
};

// Appends the line to the file; false if it cannot be written. No file name: does nothing.
bool append_record(const std::string& file, const RunRecord& record);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_RUN_RECORD_H_
