// Four ranks, as threads of one process, average a tensor of a million values. With MPI or c10d
// only the transport would be another one.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gradwire/codec.h"
#include "gradwire/collective.h"
#include "gradwire/tensor_view.h"
#include "gradwire/transport.h"

namespace {

constexpr int kWorld = 4;
constexpr std::size_t kValues = 1'000'003;

struct Rank {
  std::vector<float> values;
  gradwire::CollectiveStats stats;
  gradwire::Status status;
};

std::vector<float> gradient_of(int rank) {
  std::mt19937 generator(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal(0.0f, 1e-3f);
  std::vector<float> values(kValues);
  for (float& value : values) value = normal(generator);
  return values;
}

void run_rank(Rank& rank, std::unique_ptr<gradwire::Transport> transport,
              const gradwire::CodecSpec& codec) {
  gradwire::Communicator communicator(std::move(transport), {});
  gradwire::CollectiveOptions options;
  options.codec = codec;
  options.reduction = gradwire::Reduction::kAvg;
  const gradwire::TensorView tensor{rank.values.data(), rank.values.size(),
                                    gradwire::DType::kFloat32};
  rank.status = communicator.all_reduce(tensor, {}, options, &rank.stats);
}

// L2 distance of the result from the mean in double, relative to the mean.
double relative_error(const std::vector<float>& result) {
  std::vector<double> mean(kValues);
  for (int r = 0; r < kWorld; ++r) {
    const std::vector<float> values = gradient_of(r);
    for (std::size_t i = 0; i < kValues; ++i) mean[i] += static_cast<double>(values[i]) / kWorld;
  }
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < kValues; ++i) {
    error += (result[i] - mean[i]) * (result[i] - mean[i]);
    norm += mean[i] * mean[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const text = argc > 1 ? argv[1] : "near_lossless";
  const gradwire::Result<gradwire::CodecSpec> codec = gradwire::CodecSpec::parse(text);
  if (!codec.ok()) {
    std::fprintf(stderr, "%s\n", codec.error().to_string().c_str());
    return 2;
  }
  auto transports = gradwire::make_local_group(kWorld, gradwire::Communicator::slot_bytes({}));
  std::vector<Rank> ranks(kWorld);
  std::vector<std::thread> threads;
  for (int r = 0; r < kWorld; ++r) {
    ranks[r].values = gradient_of(r);
    threads.emplace_back(run_rank, std::ref(ranks[r]), std::move(transports[r]),
                         std::cref(codec.value()));
  }
  for (std::thread& thread : threads) thread.join();

  for (const Rank& rank : ranks) {
    if (!rank.status.ok()) {
      std::fprintf(stderr, "%s\n", rank.status.error().to_string().c_str());
      return 1;
    }
    if (rank.values != ranks[0].values) {
      std::fprintf(stderr, "the ranks differ\n");
      return 1;
    }
  }
  const gradwire::CollectiveStats& stats = ranks[0].stats;
  std::printf(
      "%s: ratio %.2f, error %.1e, all %d ranks identical\n", codec.value().to_string().c_str(),
      static_cast<double>(stats.raw_bytes_out) / static_cast<double>(stats.encoded_bytes_out),
      relative_error(ranks[0].values), kWorld);
  return 0;
}
