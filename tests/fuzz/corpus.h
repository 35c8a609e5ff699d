// The frames that are damaged.
#ifndef GRADWIRE_TESTS_FUZZ_CORPUS_H_
#define GRADWIRE_TESTS_FUZZ_CORPUS_H_

#include <cstddef>
#include <vector>

namespace gradwire::test {

// Good frames by size: small ones are quick to damage and decode; large ones have more lanes and
// several blocks.
struct Corpus {
  std::vector<std::vector<std::byte>> small;
  std::vector<std::vector<std::byte>> large;
};

// Frames of every codec example with every type, and the golden ones. Deterministic.
Corpus make_corpus();

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_FUZZ_CORPUS_H_
