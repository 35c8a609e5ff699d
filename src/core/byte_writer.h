// Writes wire bytes in order; no write ever leaves the span.
#ifndef GRADWIRE_CORE_BYTE_WRITER_H_
#define GRADWIRE_CORE_BYTE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/endian.h"

namespace gradwire::internal {

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return bytes_.size() - position_; }

  // False, with nothing written, when fewer than sizeof(T) bytes are left.
  template <typename T>
  [[nodiscard]] bool write(T value) noexcept {
    if (remaining() < sizeof(T)) return false;
    store_le(bytes_.data() + position_, value);
    position_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool write_bytes(std::span<const std::byte> source) noexcept {
    std::span<std::byte> target;
    if (!take(source.size(), &target)) return false;
    if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
    return true;
  }

  // Reserves the next `count` bytes for the caller to fill; false, with nothing taken, when
  // there are fewer.
  [[nodiscard]] bool take(std::uint64_t count, std::span<std::byte>* taken) noexcept {
    if (remaining() < count) return false;
    *taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += static_cast<std::size_t>(count);
    return true;
  }

 private:
  std::span<std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_BYTE_WRITER_H_
