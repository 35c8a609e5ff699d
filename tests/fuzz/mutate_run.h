// Decodes damaged frames in a process of its own and sees how it ends.
#ifndef GRADWIRE_TESTS_FUZZ_MUTATE_RUN_H_
#define GRADWIRE_TESTS_FUZZ_MUTATE_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/corpus.h"

namespace gradwire::test {

// What is done with each frame; returns 0 or the code of an error. Runs in the worker.
using FrameCheck = std::function<int(std::span<const std::byte> frame, std::uint64_t number)>;
// Makes the FrameCheck, in the worker.
using FrameCheckMaker = std::function<FrameCheck()>;

struct MutateRun {
  std::uint64_t seed = 1;  // frame n is made from mix(mix(seed) + n)
  // Checksums and lengths stay as the damage leaves them: every frame that differs must be refused.
  bool unmended = false;
  std::uint64_t first = 0;
  std::uint64_t most_frames = ~std::uint64_t{0};
  double seconds = 10;
  double hang_seconds = 10;  // a frame that takes so much processor time hangs
};

struct MutateResult {
  std::uint64_t frames = 0;
  double seconds = 0;
  std::array<std::uint64_t, 64> outcomes{};  // by error code, 0: decoded
  std::string finding;                       // empty if none
  std::uint64_t number = 0;                  // of the frame of the finding
};

// Frame `number` of the run, as the worker has it.
std::vector<std::byte> damaged_frame(const Corpus& corpus, const MutateRun& run,
                                     std::uint64_t number);

// The real check: check_decode() between guard pages, thorough for one frame in eight.
FrameCheck make_guarded_check();

// Ends at the first finding.
MutateResult run_mutations(const Corpus& corpus, const MutateRun& run,
                           const FrameCheckMaker& make_check);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_FUZZ_MUTATE_RUN_H_
