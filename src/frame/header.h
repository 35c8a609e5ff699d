// The frame header (docs/format.md 1.1). Its fields are listed once, in GRADWIRE_HEADER_FIELDS:
// struct, reader, writer, check of the offsets, text and comparison derive from the list.
#ifndef GRADWIRE_FRAME_HEADER_H_
#define GRADWIRE_FRAME_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/endian.h"
#include "frame/block_index.h"
#include "gradwire/frame.h"
#include "gradwire/tensor_view.h"

// FIELD(offset, type, name)
#define GRADWIRE_HEADER_FIELDS(FIELD)      \
  FIELD(0, std::uint32_t, magic)           \
  FIELD(4, std::uint16_t, version)         \
  FIELD(6, Op, op)                         \
  FIELD(7, Phase, phase)                   \
  FIELD(8, DType, dtype)                   \
  FIELD(9, Reduction, reduction)           \
  FIELD(10, CodecId, codec)                \
  FIELD(11, Coder, coder)                  \
  FIELD(12, std::uint8_t, table)           \
  FIELD(13, Schedule, schedule)            \
  FIELD(14, Rounding, rounding)            \
  FIELD(15, BoundScale, scale)             \
  FIELD(16, std::uint32_t, group)          \
  FIELD(20, std::uint32_t, block_values)   \
  FIELD(24, double, quantizer_step)        \
  FIELD(32, std::uint8_t, mantissa)        \
  FIELD(33, std::uint8_t, bits)            \
  FIELD(34, DType, cast_dtype)             \
  FIELD(35, BoundOptions, options)         \
  FIELD(36, std::uint32_t, world)          \
  FIELD(40, std::uint32_t, sender)         \
  FIELD(44, std::uint32_t, segment)        \
  FIELD(48, std::uint32_t, segment_count)  \
  FIELD(52, std::uint32_t, part_count)     \
  FIELD(56, std::uint32_t, block_count)    \
  FIELD(60, std::uint32_t, metadata_bytes) \
  FIELD(64, std::uint64_t, value_count)    \
  FIELD(72, std::uint64_t, encoded_length) \
  FIELD(80, std::uint64_t, group_id)       \
  FIELD(88, std::uint64_t, step)           \
  FIELD(96, std::uint64_t, sequence)       \
  FIELD(104, std::uint64_t, seed)          \
  FIELD(112, std::uint64_t, first_value)   \
  FIELD(120, std::uint32_t, variant)       \
  FIELD(124, std::uint32_t, checksum)

namespace gradwire::internal {

inline constexpr std::size_t kHeaderBytes = 128;
inline constexpr std::size_t kChecksumOffset = 124;
inline constexpr std::size_t kPartEntryBytes = 8;
inline constexpr std::uint32_t kMagic = 0x46525747u;  // "GWRF" read as a little-endian number

// All fields zero by default.
struct FrameHeader {
#define GRADWIRE_HEADER_MEMBER(offset, type, name) type name{};
  GRADWIRE_HEADER_FIELDS(GRADWIRE_HEADER_MEMBER)
#undef GRADWIRE_HEADER_MEMBER

  // Bytes before the first block. Cannot overflow: three 32-bit counts times small numbers.
  constexpr std::uint64_t header_length() const noexcept {
    return kHeaderBytes + kPartEntryBytes * std::uint64_t{part_count} +
           kBlockEntryBytes * std::uint64_t{block_count} + metadata_bytes;
  }
  bool operator==(const FrameHeader&) const = default;
};

// One enumerator per field, named as the field.
enum class HeaderField : std::uint8_t {
#define GRADWIRE_HEADER_ENUMERATOR(offset, type, name) name,
  GRADWIRE_HEADER_FIELDS(GRADWIRE_HEADER_ENUMERATOR)
#undef GRADWIRE_HEADER_ENUMERATOR
};

// A set of header fields.
class HeaderFieldSet {
 public:
  constexpr HeaderFieldSet(std::initializer_list<HeaderField> fields) noexcept {
    for (const HeaderField field : fields) bits_ |= bit(field);
  }
  constexpr bool contains(HeaderField field) const noexcept { return (bits_ & bit(field)) != 0; }

 private:
  static constexpr std::uint64_t bit(HeaderField field) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(field);
  }
  std::uint64_t bits_ = 0;
};

// Calls visit(HeaderField, offset, name, field) for each field in the order of the wire.
template <typename Header, typename Visitor>
constexpr void visit_header(Header& header, Visitor&& visit) {
#define GRADWIRE_HEADER_VISIT(offset, type, name) \
  visit(HeaderField::name, std::size_t{offset}, std::string_view(#name), header.name);
  GRADWIRE_HEADER_FIELDS(GRADWIRE_HEADER_VISIT)
#undef GRADWIRE_HEADER_VISIT
}

inline FrameHeader read_header(std::span<const std::byte, kHeaderBytes> bytes) noexcept {
  FrameHeader header;
  visit_header(header,
               [bytes]<typename T>(HeaderField, std::size_t offset, std::string_view, T& field) {
                 field = load_le<T>(bytes.data() + offset);
               });
  return header;
}

inline void write_header(const FrameHeader& header,
                         std::span<std::byte, kHeaderBytes> bytes) noexcept {
  visit_header(header,
               [bytes]<typename T>(HeaderField, std::size_t offset, std::string_view,
                                   const T& field) { store_le(bytes.data() + offset, field); });
}

// A field's value for a person: names where they exist ("float32", "avg"), numbers otherwise.
std::string header_field_text(const FrameHeader& header, HeaderField field);
std::string_view header_field_name(HeaderField field) noexcept;

struct FieldDifference {
  std::string_view field;
  std::string mine;
  std::string theirs;
};

// The first field of `fields`, in the order of the wire, in which the headers differ. Bit
// patterns are compared. Allocates only when there is a difference.
std::optional<FieldDifference> compare_headers(const FrameHeader& mine, const FrameHeader& theirs,
                                               HeaderFieldSet fields);

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_HEADER_H_
