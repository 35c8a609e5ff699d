#include "fuzz/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace gradwire::test {
namespace {

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

GuardedMemory::GuardedMemory(std::size_t capacity) : capacity_(capacity) {
  const std::size_t page = page_size();
  void* const all = mmap(nullptr, capacity + 2 * page, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return;
  auto* const first = static_cast<std::byte*>(all) + page;
  if (mprotect(first, capacity, PROT_READ | PROT_WRITE) == 0) mapped_ = first;
}

GuardedMemory::~GuardedMemory() {
  if (mapped_ != nullptr) munmap(mapped_ - page_size(), capacity_ + 2 * page_size());
}

std::span<std::byte> GuardedMemory::at_end(std::size_t bytes) const {
  return {mapped_ + (capacity_ - bytes), bytes};
}

std::span<std::byte> GuardedMemory::at_start(std::size_t bytes) const { return {mapped_, bytes}; }

GuardedBuffers::GuardedBuffers(std::size_t buffers, std::size_t capacity) {
  for (std::size_t i = 0; i < buffers; ++i) {
    regions_.push_back(std::make_unique<GuardedMemory>(capacity));
  }
}

bool GuardedBuffers::ok() const {
  for (const auto& region : regions_) {
    if (!region->ok()) return false;
  }
  return true;
}

std::byte* GuardedBuffers::take(std::size_t bytes) {
  if (used_ == regions_.size() || bytes > regions_[used_]->capacity()) return nullptr;
  const GuardedMemory& region = *regions_[used_++];
  return (at_start_ ? region.at_start(bytes) : region.at_end(bytes)).data();
}

void GuardedBuffers::release_all() {
  used_ = 0;
  at_start_ = !at_start_;
}

}  // namespace gradwire::test
