// Entries of the block index (docs/format.md 1.4): fields, reader, writer.
#ifndef GRADWIRE_FRAME_BLOCK_INDEX_H_
#define GRADWIRE_FRAME_BLOCK_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/endian.h"

namespace gradwire::internal {

enum class BlockKind : std::uint8_t { kStored = 0, kCoded = 1, kFixed = 2 };

inline constexpr std::size_t kBlockEntryBytes = 32;
// Bit of BlockEntry::flags: the block starts with a table of its own.
inline constexpr std::uint8_t kBlockFlagOwnTable = 1;

struct BlockEntry {
  std::uint32_t length = 0;  // bytes of the block
  BlockKind kind = BlockKind::kStored;
  std::uint8_t lanes = 0;
  std::uint8_t plane_bytes = 0;
  std::uint8_t scale_bits = 0;
  std::int16_t scale_base = 0;
  std::uint8_t mantissa = 0;
  std::uint8_t flags = 0;
  std::uint32_t word_count = 0;
  std::uint32_t outlier_count = 0;  // coded: escaped values; fixed: raw groups
  std::uint32_t reserved = 0;
  std::uint64_t hash = 0;  // XXH3-64 of the block's bytes

  bool operator==(const BlockEntry&) const = default;
};

// Calls visit(offset, field) for each field in the order of the wire.
template <typename Entry, typename Visitor>
constexpr void visit_block_entry(Entry& entry, Visitor&& visit) {
  visit(0, entry.length);
  visit(4, entry.kind);
  visit(5, entry.lanes);
  visit(6, entry.plane_bytes);
  visit(7, entry.scale_bits);
  visit(8, entry.scale_base);
  visit(10, entry.mantissa);
  visit(11, entry.flags);
  visit(12, entry.word_count);
  visit(16, entry.outlier_count);
  visit(20, entry.reserved);
  visit(24, entry.hash);
}

inline BlockEntry read_block_entry(std::span<const std::byte, kBlockEntryBytes> bytes) noexcept {
  BlockEntry entry;
  visit_block_entry(entry, [bytes]<typename T>(std::size_t offset, T& field) {
    field = load_le<T>(bytes.data() + offset);
  });
  return entry;
}

inline void write_block_entry(const BlockEntry& entry,
                              std::span<std::byte, kBlockEntryBytes> bytes) noexcept {
  visit_block_entry(entry, [bytes]<typename T>(std::size_t offset, const T& field) {
    store_le(bytes.data() + offset, field);
  });
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_BLOCK_INDEX_H_
