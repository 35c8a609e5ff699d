// Reads a frame in place: checks first, then accessors that cannot leave the bytes.
#ifndef GRADWIRE_FRAME_FRAME_READER_H_
#define GRADWIRE_FRAME_FRAME_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "frame/block_index.h"
#include "frame/header.h"
#include "gradwire/status.h"

namespace gradwire::internal {

// Length of the frame that starts at `bytes`, from its first 128 bytes. Checks their presence
// (kTruncated), magic and version only, and that the length covers the header (kBadHeader).
Result<std::uint64_t> read_frame_length(std::span<const std::byte> bytes);

// A checked frame: header, part table and index are right, the blocks lie inside the bytes. The
// blocks themselves are unchecked. Does not own the bytes.
class FrameView {
 public:
  // All checks of docs/format.md 1.1, in its order. Allocates only to report an error. Cost:
  // linear in the bytes before the blocks.
  static Result<FrameView> open(std::span<const std::byte> frame);

  const FrameHeader& header() const noexcept { return header_; }

  // Values of part `index` < header().part_count.
  std::uint64_t part_values(std::uint32_t index) const noexcept {
    return load_le<std::uint64_t>(frame_.data() + kHeaderBytes + kPartEntryBytes * index);
  }
  // Entry `index` < header().block_count.
  BlockEntry block(std::uint32_t index) const noexcept;
  // Values of block `index` < header().block_count.
  std::uint64_t block_values(std::uint32_t index) const noexcept;
  std::string_view metadata() const noexcept;
  // The bytes of all blocks, one after the other; their lengths add up to this exactly.
  std::span<const std::byte> blocks() const noexcept;

 private:
  FrameView(std::span<const std::byte> frame, const FrameHeader& header) noexcept
      : frame_(frame), header_(header) {}

  Status check_parts() const;
  Status check_index() const;

  std::span<const std::byte> frame_;
  FrameHeader header_;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_FRAME_READER_H_
