// Memory between pages that may not be touched: a read or write outside ends the process at once,
// without the cost of a sanitizer.
#ifndef GRADWIRE_TESTS_FUZZ_GUARDED_MEMORY_H_
#define GRADWIRE_TESTS_FUZZ_GUARDED_MEMORY_H_

#include <cstddef>
#include <span>
#include <vector>

#include "fuzz/checks.h"

namespace gradwire::test {

// `capacity` bytes, a multiple of the page size, with a guard page on either side.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t capacity);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  bool ok() const { return mapped_ != nullptr; }
  std::size_t capacity() const { return capacity_; }
  // `bytes` bytes with the guard right behind them, or right before them.
  std::span<std::byte> at_end(std::size_t bytes) const;
  std::span<std::byte> at_start(std::size_t bytes) const;

 private:
  std::size_t capacity_;
  std::byte* mapped_ = nullptr;
};

// Each buffer in guarded memory of its own; by turns the guard is right behind and right before.
class GuardedBuffers : public Buffers {
 public:
  GuardedBuffers(std::size_t buffers, std::size_t capacity);
  bool ok() const;
  std::byte* take(std::size_t bytes) override;
  void release_all() override;

 private:
  std::vector<std::unique_ptr<GuardedMemory>> regions_;
  std::size_t used_ = 0;
  bool at_start_ = false;
};

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_FUZZ_GUARDED_MEMORY_H_
