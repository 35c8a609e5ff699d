#include "support/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace gradwire::test {
namespace {

thread_local Allocations counted;
thread_local std::size_t limit = 0;

struct Failure {
  std::uint64_t countdown = 0;  // 0: none is planned
  bool all_after = false;
  bool has_failed = false;
};
thread_local Failure failure;

std::atomic<std::uint64_t> requests{0};
std::atomic<std::uint64_t> failing_request{0};
std::atomic<bool> request_failed{false};

bool is_refused(std::size_t size) {
  if (++requests == failing_request) {
    request_failed = true;
    return true;
  }
  if (limit != 0 && size > limit) return true;
  if (failure.countdown == 0) return false;
  if (failure.countdown > 1) {
    --failure.countdown;
    return false;
  }
  if (!failure.all_after) failure.countdown = 0;
  failure.has_failed = true;
  return true;
}

void* allocate(std::size_t size) {
  ++counted.calls;
  if (size > counted.largest) counted.largest = size;
  if (is_refused(size)) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++counted.live;
  return memory;
}

void* allocate(std::size_t size, std::align_val_t alignment) {
  ++counted.calls;
  if (size > counted.largest) counted.largest = size;
  if (is_refused(size)) throw std::bad_alloc();
  const auto unit = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  ++counted.live;
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) --counted.live;
  std::free(memory);
}

}  // namespace

Allocations allocations() noexcept { return counted; }
void reset_allocations() noexcept { counted = {}; }
void limit_allocations(std::size_t most_bytes) noexcept { limit = most_bytes; }

bool fail_allocations(std::uint64_t first, bool all_after) noexcept {
  const bool had_failed = failure.has_failed;
  failure = {first, all_after, false};
  return had_failed;
}

std::uint64_t allocations_of_all_threads() noexcept { return requests; }

bool fail_allocation_of_any_thread(std::uint64_t number) noexcept {
  failing_request = number == 0 ? 0 : requests + number;
  return request_failed.exchange(false);
}

}  // namespace gradwire::test

using gradwire::test::release;

namespace {

// The forms that do not throw, which std::stable_sort asks. The standard library's own go through
// those above; a sanitizer's do not, and would not pair with `release`.
template <typename... Alignment>
void* allocate_or_null(std::size_t size, Alignment... alignment) noexcept {
  try {
    return gradwire::test::allocate(size, alignment...);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

void* operator new(std::size_t size) { return gradwire::test::allocate(size); }
void* operator new[](std::size_t size) { return gradwire::test::allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return gradwire::test::allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return gradwire::test::allocate(size, alignment);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, alignment);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}
