// Memory of frames on their way out: each is packed at its encoded size and stays where it is
// until the whole collective is done, as a transport reads it in the background.
#ifndef GRADWIRE_COLLECTIVE_SEND_ARENA_H_
#define GRADWIRE_COLLECTIVE_SEND_ARENA_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace gradwire::internal {

class SendArena {
 public:
  // Room for a frame of up to `bytes`; valid until reset(). Reserving again without keep() gives
  // the same room. May throw std::bad_alloc.
  std::span<std::byte> reserve(std::size_t bytes) {
    while (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < bytes) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
      const std::size_t size = bytes > kChunkBytes ? bytes : kChunkBytes;
      chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    }
    return {chunks_[chunk_].bytes.get() + used_, bytes};
  }
  // Keeps the first `bytes` of what was reserved last.
  void keep(std::size_t bytes) noexcept { used_ += bytes; }
  // Forgets all frames and keeps the memory for the next ones.
  void reset() noexcept {
    chunk_ = 0;
    used_ = 0;
  }

 private:
  // Large beside a segment, so that little is lost at the end of a chunk.
  static constexpr std::size_t kChunkBytes = std::size_t{16} << 20;

  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // chunk in use
  std::size_t used_ = 0;   // bytes of it
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_SEND_ARENA_H_
