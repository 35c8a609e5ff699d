// Reads wire bytes in order; no read ever leaves the span.
#ifndef GRADWIRE_CORE_BYTE_READER_H_
#define GRADWIRE_CORE_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/endian.h"

namespace gradwire::internal {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return bytes_.size() - position_; }

  // False, with nothing read, when fewer than sizeof(T) bytes are left.
  template <typename T>
  [[nodiscard]] bool read(T* value) noexcept {
    if (remaining() < sizeof(T)) return false;
    *value = load_le<T>(bytes_.data() + position_);
    position_ += sizeof(T);
    return true;
  }

  // The next `count` bytes as a span; false, with nothing taken, when there are fewer.
  [[nodiscard]] bool take(std::uint64_t count, std::span<const std::byte>* taken) noexcept {
    if (remaining() < count) return false;
    *taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += static_cast<std::size_t>(count);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_BYTE_READER_H_
