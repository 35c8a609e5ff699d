// Writes a frame in place: part table, blocks and their index entries, then the header.
#ifndef GRADWIRE_FRAME_FRAME_WRITER_H_
#define GRADWIRE_FRAME_FRAME_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/byte_writer.h"
#include "frame/block_index.h"
#include "frame/header.h"
#include "gradwire/status.h"

namespace gradwire::internal {

// Use: begin(), part() part_count times, metadata(), then per block free_space() and block()
// block_count times, finish(). A call out of order or out of space is kInternal from finish().
class FrameWriter {
 public:
  // `header`: everything but magic, version, encoded_length and checksum. Errors:
  // kBufferTooSmall when not even header, tables and metadata fit.
  static Result<FrameWriter> begin(const FrameHeader& header, std::span<std::byte> out);

  void part(std::uint64_t values) noexcept { ok_ = parts_.write(values) && ok_; }
  void metadata(std::string_view text) noexcept;
  // Where the next block's bytes go.
  std::span<std::byte> free_space() const noexcept { return out_.subspan(end_); }
  // The first entry.length bytes of free_space() are the next block, entry.hash theirs.
  void block(const BlockEntry& entry) noexcept;
  // Writes the header; returns the frame's length.
  Result<std::size_t> finish();

 private:
  FrameWriter(const FrameHeader& header, std::span<std::byte> out) noexcept;

  FrameHeader header_;
  std::span<std::byte> out_;
  ByteWriter parts_;
  ByteWriter index_;
  ByteWriter metadata_;
  std::size_t end_;  // of the last block
  bool ok_ = true;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_FRAME_WRITER_H_
