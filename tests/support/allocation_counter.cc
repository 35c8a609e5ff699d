#include "support/allocation_counter.h"

#include <cstdlib>
#include <new>

namespace gradwire::test {
namespace {

thread_local Allocations counted;
thread_local std::size_t limit = 0;

void* allocate(std::size_t size) {
  ++counted.calls;
  if (size > counted.largest) counted.largest = size;
  if (limit != 0 && size > limit) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate(std::size_t size, std::align_val_t alignment) {
  ++counted.calls;
  if (size > counted.largest) counted.largest = size;
  if (limit != 0 && size > limit) throw std::bad_alloc();
  const auto unit = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

Allocations allocations() noexcept { return counted; }
void reset_allocations() noexcept { counted = {}; }
void limit_allocations(std::size_t most_bytes) noexcept { limit = most_bytes; }

}  // namespace gradwire::test

void* operator new(std::size_t size) { return gradwire::test::allocate(size); }
void* operator new[](std::size_t size) { return gradwire::test::allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return gradwire::test::allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return gradwire::test::allocate(size, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
