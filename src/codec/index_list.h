// Index lists of docs/format.md 4.9: k increasing indices below n, each as its low bits in an array
// and its high bits as the place of a one in a string of bits (Elias-Fano coding).
#ifndef GRADWIRE_CODEC_INDEX_LIST_H_
#define GRADWIRE_CODEC_INDEX_LIST_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/bit_array.h"
#include "core/endian.h"

namespace gradwire::internal {

// Sizes of the two parts.
struct IndexListLayout {
  unsigned low_bits = 0;
  std::uint64_t low_bytes = 0;
  std::uint64_t high_bits = 0;
  std::uint64_t high_bytes = 0;
};

// Precondition: kept <= count < 2^32.
constexpr IndexListLayout index_list_layout(std::uint64_t count, std::uint64_t kept) noexcept {
  IndexListLayout layout;
  if (kept == 0) return layout;
  layout.low_bits = std::min(16u, static_cast<unsigned>(std::bit_width(count / kept)) - 1);
  layout.low_bytes = bit_array_bytes(kept, layout.low_bits);
  layout.high_bits = kept + ((count - 1) >> layout.low_bits);
  layout.high_bytes = bit_array_bytes(layout.high_bits, 1);
  return layout;
}

// Precondition: the spans have the sizes of the layout, `high` is zero.
class IndexListWriter {
 public:
  IndexListWriter(const IndexListLayout& layout, std::span<std::byte> low,
                  std::span<std::byte> high) noexcept
      : low_bits_(layout.low_bits), low_(low.data(), layout.low_bits), high_(high.data()) {}

  // Each index is larger than the one before.
  void put(std::uint32_t index) noexcept {
    low_.append(&index, 1);  // keeps the low bits
    const std::uint64_t bit = (index >> low_bits_) + written_++;
    high_[bit / 8] |= static_cast<std::byte>(1u << (bit % 8));
  }
  void finish() noexcept { low_.finish(); }

 private:
  const unsigned low_bits_;
  BitPacker low_;
  std::byte* high_;
  std::uint64_t written_ = 0;
};

// Precondition: the spans have the sizes of the layout; their bytes may be anything.
class IndexListReader {
 public:
  IndexListReader(const IndexListLayout& layout, std::uint64_t count,
                  std::span<const std::byte> low, std::span<const std::byte> high) noexcept
      : layout_(layout), count_(count), low_(low), high_(high) {}

  // False if there is no further one, if it is not larger than the one before, or not below n.
  bool next(std::uint32_t* index) noexcept {
    if (!find_one()) return false;
    const std::uint64_t upper = bit_ - read_;
    ++bit_;
    const std::uint64_t value =
        (upper << layout_.low_bits) | bit_array_get(low_, read_, layout_.low_bits);
    ++read_;
    if (value < least_ || value >= count_) return false;
    least_ = value + 1;
    *index = static_cast<std::uint32_t>(value);
    return true;
  }
  // Whether no one is left.
  bool at_end() noexcept { return !find_one(); }

 private:
  // Moves bit_ to the next one.
  bool find_one() noexcept {
    while (bit_ < layout_.high_bits) {
      const std::size_t byte = static_cast<std::size_t>(bit_ / 8);
      const unsigned rest = std::to_integer<unsigned>(high_[byte]) >> (bit_ % 8);
      if (rest != 0) {
        bit_ += static_cast<unsigned>(std::countr_zero(rest));
        return bit_ < layout_.high_bits;
      }
      bit_ = 8 * (std::uint64_t{byte} + 1);
    }
    return false;
  }

  const IndexListLayout layout_;
  const std::uint64_t count_;
  const std::span<const std::byte> low_;
  const std::span<const std::byte> high_;
  std::uint64_t bit_ = 0;    // of the high part
  std::uint64_t read_ = 0;   // indices
  std::uint64_t least_ = 0;  // that the next one may be
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_INDEX_LIST_H_
