#include "support/thread_ranks.h"

#include <thread>
#include <utility>

namespace gradwire::testing {

void run_ranks(int world, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 1; rank < world; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  if (world > 0) body(0);
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::unique_ptr<Communicator>> make_communicators(int world,
                                                              const Communicator::Options& options,
                                                              const WrapTransport& wrap) {
  std::vector<std::unique_ptr<Transport>> group =
      make_local_group(world, Communicator::slot_bytes(options));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < world; ++rank) {
    std::unique_ptr<Transport> transport = std::move(group[static_cast<std::size_t>(rank)]);
    if (wrap) transport = wrap(rank, std::move(transport));
    communicators.push_back(std::make_unique<Communicator>(std::move(transport), options));
  }
  return communicators;
}

std::vector<RankOutcome> all_reduce_ranks(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    std::vector<std::vector<std::byte>>& tensors, DType dtype, const std::vector<PartLayout>& parts,
    const CollectiveOptions& options) {
  std::vector<RankOutcome> outcomes(communicators.size());
  run_ranks(static_cast<int>(communicators.size()), [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const TensorView data{tensors[r].data(), tensors[r].size() / dtype_size(dtype), dtype};
    const Clock::time_point start = Clock::now();
    outcomes[r].status = communicators[r]->all_reduce(data, parts, options, &outcomes[r].stats);
    outcomes[r].elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  });
  return outcomes;
}

}  // namespace gradwire::testing
