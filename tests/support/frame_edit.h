// Changes fields of a frame, with its checksums put right.
#ifndef GRADWIRE_TESTS_SUPPORT_FRAME_EDIT_H_
#define GRADWIRE_TESTS_SUPPORT_FRAME_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "frame/block_index.h"
#include "frame/header.h"
#include "support/frame_fixup.h"

namespace gradwire::test {

// Changes header fields of a frame and puts the checksums right.
template <typename Change>
void change_header(std::span<std::byte> frame, Change change) {
  using namespace internal;
  FrameHeader header = read_header(frame.first<kHeaderBytes>());
  change(header);
  write_header(header, frame.first<kHeaderBytes>());
  fix_checksums(frame);
}

// Changes the index entry of a block and puts the checksums right.
template <typename Change>
void change_entry(std::span<std::byte> frame, std::uint32_t block, Change change) {
  using namespace internal;
  const FrameHeader header = read_header(frame.first<kHeaderBytes>());
  const std::size_t offset = kHeaderBytes + kPartEntryBytes * std::size_t{header.part_count} +
                             kBlockEntryBytes * std::size_t{block};
  const auto place = frame.subspan(offset).first<kBlockEntryBytes>();
  BlockEntry entry = read_block_entry(place);
  change(entry);
  write_block_entry(entry, place);
  fix_checksums(frame);
}

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_FRAME_EDIT_H_
