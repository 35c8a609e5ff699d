// Random codecs with random values, for property tests: everything follows from one seed.
#ifndef GRADWIRE_TESTS_SUPPORT_RANDOM_CASE_H_
#define GRADWIRE_TESTS_SUPPORT_RANDOM_CASE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gradwire/codec.h"
#include "support/tensor.h"

namespace gradwire::test {

struct RandomCase {
  std::uint64_t seed = 0;
  CodecSpec spec;
  DType dtype = DType::kFloat32;
  std::string distribution;
  std::vector<Tensor> tensors;

  std::string describe() const;
};

// `most_values` bounds the values of the whole frame. kBlock and so on: only this codec.
RandomCase make_random_case(std::uint64_t seed, std::uint64_t most_values);
RandomCase make_random_case(std::uint64_t seed, std::uint64_t most_values, CodecId codec);

// Runs a property test for GRADWIRE_TEST_SECONDS seconds (else `seconds`), and at least once:
//   RandomLoop loop(0.5);
//   while (loop.next()) { ... loop.seed() ... }
// The first seed is GRADWIRE_TEST_SEED, else new every time; the seeds count up from it. The
// destructor prints the first seed and how many there were. Stops at the first failure.
class RandomLoop {
 public:
  explicit RandomLoop(double seconds);
  ~RandomLoop();
  RandomLoop(const RandomLoop&) = delete;
  RandomLoop& operator=(const RandomLoop&) = delete;

  bool next();
  std::uint64_t seed() const noexcept { return first_seed_ + rounds_ - 1; }

 private:
  std::uint64_t first_seed_ = 0;
  std::uint64_t rounds_ = 0;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_RANDOM_CASE_H_
