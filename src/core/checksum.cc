#include "core/checksum.h"

#include <array>

#include "core/checksum_simd.h"
#include "core/endian.h"
// XXH_INLINE_ALL comes from the build, so that xxHash is compiled into this file only.
#include <xxhash.h>

namespace gradwire::internal {
namespace {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

// Row k is the CRC of a byte followed by k zero bytes, so that eight bytes are eight look-ups
// that do not wait for each other (slice-by-8).
constexpr CrcTables make_crc_tables() noexcept {
  constexpr std::uint32_t kPolynomial = 0x82F63B78u;  // Castagnoli, reflected
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t row = 1; row < tables.size(); ++row) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8) ^ tables[0][before & 0xFFu];
    }
  }
  return tables;
}

constexpr CrcTables kCrc = make_crc_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) noexcept {
  std::uint32_t crc = ~previous;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint32_t low = crc ^ load_le<std::uint32_t>(at);
    const auto high = load_le<std::uint32_t>(at + 4);
    crc = kCrc[7][low & 0xFFu] ^ kCrc[6][(low >> 8) & 0xFFu] ^ kCrc[5][(low >> 16) & 0xFFu] ^
          kCrc[4][low >> 24] ^ kCrc[3][high & 0xFFu] ^ kCrc[2][(high >> 8) & 0xFFu] ^
          kCrc[1][(high >> 16) & 0xFFu] ^ kCrc[0][high >> 24];
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8) ^ kCrc[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xFFu];
  }
  return ~crc;
}

std::uint64_t hash64(std::span<const std::byte> bytes) noexcept {
  // Where xxHash has special cases for short inputs, and where vectors are not worth their start.
  constexpr std::size_t kShort = 1024;
  if (bytes.size() > kShort) {
    // XXH3_hashLong_64b_default(), with the vectors of this machine instead of the compiler's.
    alignas(64) XxhLanes lanes = XXH3_INIT_ACC;
    if (xxh3_accumulate(bytes.data(), bytes.size(), XXH3_kSecret, &lanes)) {
      return XXH3_mergeAccs(lanes.data(), XXH3_kSecret + XXH_SECRET_MERGEACCS_START,
                            bytes.size() * XXH_PRIME64_1);
    }
  }
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace gradwire::internal
