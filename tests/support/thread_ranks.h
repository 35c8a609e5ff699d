// Groups of ranks as threads of the test.
#ifndef GRADWIRE_TESTS_SUPPORT_THREAD_RANKS_H_
#define GRADWIRE_TESTS_SUPPORT_THREAD_RANKS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "gradwire/collective.h"
#include "gradwire/transport.h"

namespace gradwire::testing {

// Runs body(rank) on one thread per rank and waits for all.
void run_ranks(int world, const std::function<void(int)>& body);

// One communicator per rank over a local group. `wrap`, if given, may put another transport
// around that of a rank.
using WrapTransport = std::function<std::unique_ptr<Transport>(int, std::unique_ptr<Transport>)>;
std::vector<std::unique_ptr<Communicator>> make_communicators(
    int world, const Communicator::Options& options = {}, const WrapTransport& wrap = {});

// What one rank got out of one call.
struct RankOutcome {
  Status status;
  CollectiveStats stats;
  std::chrono::milliseconds elapsed{0};
};

// all_reduce on every rank at once: tensors[r] is the tensor of rank r.
std::vector<RankOutcome> all_reduce_ranks(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    std::vector<std::vector<std::byte>>& tensors, DType dtype, const std::vector<PartLayout>& parts,
    const CollectiveOptions& options);

}  // namespace gradwire::testing

#endif  // GRADWIRE_TESTS_SUPPORT_THREAD_RANKS_H_
