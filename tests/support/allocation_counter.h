// Counts what the calling thread allocates with operator new.
#ifndef GRADWIRE_TESTS_SUPPORT_ALLOCATION_COUNTER_H_
#define GRADWIRE_TESTS_SUPPORT_ALLOCATION_COUNTER_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::test {

struct Allocations {
  std::uint64_t calls = 0;
  std::size_t largest = 0;  // bytes
  std::int64_t live = 0;    // taken less given back, by this thread
};

// Since the last reset_allocations() of this thread.
Allocations allocations() noexcept;
void reset_allocations() noexcept;
// Requests of more bytes than this throw std::bad_alloc on this thread; 0: no limit.
void limit_allocations(std::size_t most_bytes) noexcept;
// Of this thread's next requests the `first`-th (from 1) throws std::bad_alloc, with `all_after`
// also those behind it; 0: none. Returns whether one has thrown since the last call.
bool fail_allocations(std::uint64_t first, bool all_after = false) noexcept;

// The same for all threads together: requests since the start of the program, and the failure of
// the next `number`-th from now (from 1; 0: none).
std::uint64_t allocations_of_all_threads() noexcept;
bool fail_allocation_of_any_thread(std::uint64_t number) noexcept;

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_ALLOCATION_COUNTER_H_
