// Runs the chunks of a case in several processes: the vector target in use is one per process.
#ifndef GRADWIRE_TESTS_EXHAUSTIVE_WORKERS_H_
#define GRADWIRE_TESTS_EXHAUSTIVE_WORKERS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "exhaustive/cases.h"

namespace gradwire::test {

struct Plan {
  std::uint64_t patterns = 0;  // of each case, a stratified sample; 0: all
  std::uint64_t seed = 0;      // of the sample
  unsigned jobs = 1;
  std::chrono::steady_clock::time_point end;  // chunks begun before this are finished
};

struct CaseResult {
  std::uint64_t chunks = 0;   // done
  std::uint64_t planned = 0;  // of the case or of the sample
  double seconds = 0;
  std::string violation;  // the first one; empty if none

  bool complete() const { return chunks == planned; }
};

// Progress goes to stderr every ten seconds.
CaseResult run_case(const ExhaustiveCase& one, const Plan& plan);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_EXHAUSTIVE_WORKERS_H_
