// What a Workspace holds. Buffers only grow, so that steady use allocates nothing.
#ifndef GRADWIRE_CODEC_WORKSPACE_H_
#define GRADWIRE_CODEC_WORKSPACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/block_codec.h"
#include "codec/coded_block.h"
#include "codec/part_scales.h"
#include "core/thread_pool.h"

namespace gradwire {

namespace internal {

// Of one thread.
struct BlockScratch {
  std::vector<Piece> pieces;         // of the block being encoded
  std::vector<PieceOut> pieces_out;  // where the block being decoded ends up
  // decode_add(): one decoded block and its pieces.
  std::vector<std::byte> values;
  std::vector<PieceOut> value_pieces;
  // Encoder: a block whose place in the frame is not known yet.
  std::vector<std::byte> block;
  CodedScratch coded;
};

// A thread is woken for that many bytes of values at least: one block of 65,536 float32 values.
inline constexpr std::uint64_t kLeastBytesOfThread = std::uint64_t{1} << 18;

}  // namespace internal

struct Workspace::Impl {
  internal::BlockScratch scratch;  // of the calling thread
  std::vector<std::unique_ptr<internal::BlockScratch>> others;
  internal::PartScaleScratch part_scales;
  std::unique_ptr<internal::ThreadPool> pool;

  // Threads for that much work; their scratch is there afterwards. May throw std::bad_alloc.
  unsigned workers_for(std::uint64_t blocks, std::uint64_t bytes) {
    if (pool == nullptr) return 1;
    const std::uint64_t most = std::min(blocks, bytes / internal::kLeastBytesOfThread);
    const auto workers = static_cast<unsigned>(std::clamp<std::uint64_t>(most, 1, pool->threads()));
    while (others.size() + 1 < workers) {
      others.push_back(std::make_unique<internal::BlockScratch>());
    }
    return workers;
  }
  internal::BlockScratch& scratch_of(unsigned worker) {
    return worker == 0 ? scratch : *others[worker - 1];
  }
  // job(worker) on that many threads.
  template <typename Job>
  void run(unsigned workers, Job& job) {
    if (workers == 1) return job(0);
    pool->run(workers, job);
  }
};

}  // namespace gradwire

#endif  // GRADWIRE_CODEC_WORKSPACE_H_
