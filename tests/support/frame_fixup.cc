#include "support/frame_fixup.h"

#include <cstdint>

#include "core/checksum.h"
#include "core/endian.h"

namespace gradwire::test {

using internal::load_le;
using internal::store_le;

void fix_checksums(std::span<std::byte> frame) {
  constexpr std::size_t kHeader = 128, kEntry = 32;
  if (frame.size() < kHeader) return;
  const std::uint64_t parts = load_le<std::uint32_t>(frame.data() + 52);
  const std::uint64_t blocks = load_le<std::uint32_t>(frame.data() + 56);
  const std::uint64_t index = kHeader + 8 * parts;
  const std::uint64_t begin = index + kEntry * blocks + load_le<std::uint32_t>(frame.data() + 60);
  if (begin > frame.size()) return;
  std::uint64_t at = begin;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    std::byte* const entry = frame.data() + index + kEntry * block;
    const std::uint64_t length = load_le<std::uint32_t>(entry);
    if (length > frame.size() - at) break;
    store_le(entry + 24, internal::hash64(frame.subspan(at, length)));
    at += length;
  }
  const std::uint32_t head = internal::crc32c(frame.first(124));
  store_le(frame.data() + 124, internal::crc32c(frame.subspan(kHeader, begin - kHeader), head));
}

}  // namespace gradwire::test
