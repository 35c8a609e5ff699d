// Damage to frames, chosen by a seed.
#ifndef GRADWIRE_TESTS_SUPPORT_MUTATE_H_
#define GRADWIRE_TESTS_SUPPORT_MUTATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradwire::test {

// One to eight changes: bits, bytes, numbers of 1 to 8 bytes that are hard on arithmetic, bytes
// taken out, put in or copied. The frame may stay as it was.
std::vector<std::byte> damaged(std::vector<std::byte> frame, std::uint64_t seed);

// The same, then most often the lengths of frame and last block and the checksums put right.
std::vector<std::byte> mutated(std::vector<std::byte> frame, std::uint64_t seed);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_MUTATE_H_
