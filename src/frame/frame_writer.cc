#include "frame/frame_writer.h"

#include <string>

#include "core/checksum.h"
#include "gradwire/version.h"

namespace gradwire::internal {
namespace {

std::size_t parts_bytes(const FrameHeader& header) noexcept {
  return kPartEntryBytes * std::size_t{header.part_count};
}

std::size_t index_bytes(const FrameHeader& header) noexcept {
  return kBlockEntryBytes * std::size_t{header.block_count};
}

}  // namespace

Result<FrameWriter> FrameWriter::begin(const FrameHeader& header, std::span<std::byte> out) {
  if (out.size() < header.header_length()) {
    Error error;
    error.code = ErrorCode::kBufferTooSmall;
    error.field = "out";
    error.message = "out has " + std::to_string(out.size()) + " bytes, header and tables need " +
                    std::to_string(header.header_length());
    return error;
  }
  return FrameWriter(header, out);
}

FrameWriter::FrameWriter(const FrameHeader& header, std::span<std::byte> out) noexcept
    : header_(header),
      out_(out),
      parts_(out.subspan(kHeaderBytes, parts_bytes(header))),
      index_(out.subspan(kHeaderBytes + parts_bytes(header), index_bytes(header))),
      metadata_(out.subspan(kHeaderBytes + parts_bytes(header) + index_bytes(header),
                            header.metadata_bytes)),
      end_(static_cast<std::size_t>(header.header_length())) {}

void FrameWriter::metadata(std::string_view text) noexcept {
  ok_ = metadata_.write_bytes(std::as_bytes(std::span(text))) && ok_;
}

void FrameWriter::block(const BlockEntry& entry) noexcept {
  std::span<std::byte> slot;
  if (entry.length > out_.size() - end_ || !index_.take(kBlockEntryBytes, &slot)) {
    ok_ = false;
    return;
  }
  write_block_entry(entry, slot.first<kBlockEntryBytes>());
  end_ += entry.length;
}

Result<std::size_t> FrameWriter::finish() {
  if (!ok_ || parts_.remaining() + index_.remaining() + metadata_.remaining() != 0) {
    Error error;
    error.code = ErrorCode::kInternal;
    error.message = "frame writer used out of order";
    return error;
  }
  header_.magic = kMagic;
  header_.version = kFormatVersion;
  header_.encoded_length = end_;
  header_.checksum = 0;
  write_header(header_, out_.first<kHeaderBytes>());
  const auto tables = static_cast<std::size_t>(header_.header_length()) - kHeaderBytes;
  header_.checksum =
      crc32c(out_.subspan(kHeaderBytes, tables), crc32c(out_.first(kChecksumOffset)));
  store_le(out_.data() + kChecksumOffset, header_.checksum);
  return end_;
}

}  // namespace gradwire::internal
