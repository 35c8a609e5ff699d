// The long part of XXH3-64 in vector registers.
#ifndef GRADWIRE_CORE_CHECKSUM_SIMD_H_
#define GRADWIRE_CORE_CHECKSUM_SIMD_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::size_t kXxhStripe = 64;
inline constexpr std::size_t kXxhSecret = 192;
using XxhLanes = std::array<std::uint64_t, 8>;

// Takes all of an input of more than kXxhStripe bytes into `lanes`, as XXH3_hashLong_64b() does
// before it merges them. `secret` has kXxhSecret bytes. False, and nothing done, where this
// machine (or GRADWIRE_TARGET) has no vectors for it.
bool xxh3_accumulate(const std::byte* bytes, std::size_t size, const std::uint8_t* secret,
                     XxhLanes* lanes) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_CHECKSUM_SIMD_H_
