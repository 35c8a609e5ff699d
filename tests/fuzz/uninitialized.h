// Which bytes were written, as MemorySanitizer knows it (preset msan); elsewhere nothing is known.
#ifndef GRADWIRE_TESTS_FUZZ_UNINITIALIZED_H_
#define GRADWIRE_TESTS_FUZZ_UNINITIALIZED_H_

#include <cstddef>
#include <type_traits>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define GRADWIRE_TESTS_MSAN 1
#include <sanitizer/msan_interface.h>
#endif
#endif

namespace gradwire::test {

// False if one of the bytes has not been written, or was made from such a byte.
inline bool all_written([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef GRADWIRE_TESTS_MSAN
  return __msan_test_shadow(data, bytes) < 0;
#else
  return true;
#endif
}

// From now on these bytes count as never written.
inline void forget([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef GRADWIRE_TESTS_MSAN
  __msan_poison(data, bytes);
#endif
}

// The elements of a vector or an array.
template <typename Container>
void forget_all(Container& values) {
  static_assert(std::is_trivially_copyable_v<typename Container::value_type>);
  forget(values.data(), values.size() * sizeof(typename Container::value_type));
}

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_FUZZ_UNINITIALIZED_H_
