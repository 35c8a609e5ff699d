// The documented result of all_reduce, worked out by one thread without transport or schedule.
#ifndef GRADWIRE_TESTS_SUPPORT_ALL_REDUCE_MODEL_H_
#define GRADWIRE_TESTS_SUPPORT_ALL_REDUCE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gradwire/collective.h"

namespace gradwire::testing {

using Bytes = std::vector<std::byte>;

// tensors[r] is the tensor of rank r; the result is what every rank must hold afterwards. sent[r],
// if wanted, is what the owners get of it: decoded, rank r's own shard as it is.
Bytes model_all_reduce(const std::vector<Bytes>& tensors, DType dtype,
                       const std::vector<PartLayout>& parts, const CollectiveOptions& options,
                       std::uint32_t segment_bytes, std::vector<Bytes>* sent = nullptr);

// Gradient-like values; with `specials` also zeros, NaN, infinities and subnormals.
Bytes random_tensor(std::mt19937_64& random, DType dtype, std::size_t count, bool specials);

// Seed of a random test: GRADWIRE_TEST_SEED if set, else a new one. Prints it.
std::uint64_t test_seed(const std::string& test);

// Index of the first byte in which they differ, or "same".
std::string first_difference(const Bytes& a, const Bytes& b);

}  // namespace gradwire::testing

#endif  // GRADWIRE_TESTS_SUPPORT_ALL_REDUCE_MODEL_H_
