// Unaligned little-endian loads and stores of fixed-width numbers.
#ifndef GRADWIRE_CORE_ENDIAN_H_
#define GRADWIRE_CORE_ENDIAN_H_

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace gradwire::internal {

// The wire is little-endian and values travel as they lie in memory.
static_assert(std::endian::native == std::endian::little,
              "Gradwire supports little-endian hosts only");

// The number that starts at `bytes`; sizeof(T) bytes must be readable there.
template <typename T>
inline T load_le(const std::byte* bytes) noexcept {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Writes `value` to the sizeof(T) bytes at `bytes`.
template <typename T>
inline void store_le(std::byte* bytes, T value) noexcept {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  std::memcpy(bytes, &value, sizeof(T));
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_ENDIAN_H_
