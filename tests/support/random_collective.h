// Random collectives on threads, each against the documented result.
#ifndef GRADWIRE_TESTS_SUPPORT_RANDOM_COLLECTIVE_H_
#define GRADWIRE_TESTS_SUPPORT_RANDOM_COLLECTIVE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gradwire/collective.h"

namespace gradwire::testing {

struct CollectiveCase {
  int world = 1;
  DType dtype = DType::kFloat32;
  std::vector<PartLayout> parts;
  CollectiveOptions options;
  Communicator::Options group;
  bool specials = false;

  std::size_t values() const;
  std::string text() const;
};

// 1 to 8 ranks, 1 to 40 parts of up to 3000 values, small segments.
CollectiveCase random_collective(std::mt19937_64& random);

// Runs it with random tensors: what is wrong on which rank, empty if every rank ends with the bits
// of model_all_reduce().
std::string collective_violation(const CollectiveCase& wanted, std::mt19937_64& random);

}  // namespace gradwire::testing

#endif  // GRADWIRE_TESTS_SUPPORT_RANDOM_COLLECTIVE_H_
