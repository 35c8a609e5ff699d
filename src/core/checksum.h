// The two checksums of the wire format.
#ifndef GRADWIRE_CORE_CHECKSUM_H_
#define GRADWIRE_CORE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire::internal {

// CRC-32C (Castagnoli, reflected, initial value and final xor FFFFFFFF) of `bytes`. Pass the
// result for the bytes before as `previous` to continue: crc32c(b, crc32c(a)) is that of a | b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0) noexcept;

// XXH3-64 with seed 0.
std::uint64_t hash64(std::span<const std::byte> bytes) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_CHECKSUM_H_
