// Bit arrays of docs/format.md section 2: element i of width w takes bits i w to i w + w - 1,
// and bit j of the array is bit j mod 8 of byte j / 8.
#ifndef GRADWIRE_CORE_BIT_ARRAY_H_
#define GRADWIRE_CORE_BIT_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/endian.h"

namespace gradwire::internal {

// Bytes of `count` elements of `width` bits, width at most 16. No overflow for count < 2^60.
constexpr std::uint64_t bit_array_bytes(std::uint64_t count, unsigned width) noexcept {
  return (count * width + 7) / 8;
}

// Element `index` of an array of unsigned numbers, width 0 to 16. Bits beyond the span read as 0.
inline std::uint32_t bit_array_get(std::span<const std::byte> bytes, std::uint64_t index,
                                   unsigned width) noexcept {
  const std::uint64_t bit = index * width;
  const std::uint64_t first = bit / 8;
  std::uint32_t window = 0;  // a width of 16 touches three bytes at most
  for (unsigned i = 0; i < 3 && first + i < bytes.size(); ++i) {
    window |= std::to_integer<std::uint32_t>(bytes[static_cast<std::size_t>(first + i)]) << (8 * i);
  }
  return (window >> (bit % 8)) & ((1u << width) - 1u);
}

// Packs the low `width` bits (0 to 16) of each value. Appends, so that elements may come in
// pieces; finish() writes the last partial byte. Precondition: the target holds
// bit_array_bytes(all elements, width) bytes.
class BitPacker {
 public:
  BitPacker(std::byte* target, unsigned width) noexcept
      : target_(target), width_(width), mask_((1u << width) - 1u) {}

  template <typename T>
  void append(const T* values, std::size_t count) noexcept {
    if (pending_bits_ == 0) {
      const std::size_t whole = append_whole_bytes(values, count);
      values += whole;
      count -= whole;
    }
    for (std::size_t i = 0; i < count; ++i) {
      pending_ |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(values[i]) & mask_)
                  << pending_bits_;
      pending_bits_ += width_;
      while (pending_bits_ >= 8) flush_byte();
    }
  }

  // Returns the end of the array.
  std::byte* finish() noexcept {
    if (pending_bits_ > 0) flush_byte();
    pending_bits_ = 0;
    return target_;
  }

 private:
  // The part of `values` that the loops for common widths take: how many.
  template <typename T>
  std::size_t append_whole_bytes(const T* values, std::size_t count) noexcept {
    if (width_ == 8) {
      for (std::size_t i = 0; i < count; ++i) {
        target_[i] = static_cast<std::byte>(static_cast<std::uint8_t>(values[i]));
      }
      target_ += count;
      return count;
    }
    if (width_ == 4) {
      const std::size_t pairs = count / 2;
      for (std::size_t i = 0; i < pairs; ++i) {
        const auto low = static_cast<std::uint8_t>(values[2 * i]);
        const auto high = static_cast<std::uint8_t>(values[2 * i + 1]);
        target_[i] = static_cast<std::byte>((low & 15u) | ((high & 15u) << 4));
      }
      target_ += pairs;
      return 2 * pairs;
    }
    if (width_ == 16) {
      for (std::size_t i = 0; i < count; ++i) {
        store_le(target_ + 2 * i, static_cast<std::uint16_t>(values[i]));
      }
      target_ += 2 * count;
      return count;
    }
    // Eight elements are `width` whole bytes.
    const std::size_t eights = count / 8;
    for (std::size_t i = 0; i < eights; ++i, target_ += width_) pack_eight(values + 8 * i);
    return 8 * eights;
  }

  template <typename T>
  void pack_eight(const T* values) noexcept {
    std::uint64_t low = 0;  // elements 0..3: up to 64 bits
    std::uint64_t high = 0;
    for (unsigned i = 0; i < 4; ++i) {
      low |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(values[i]) & mask_)
             << (i * width_);
      high |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(values[i + 4]) & mask_)
              << (i * width_);
    }
    // 4 w bits are whole bytes for even w; for odd w the upper half starts inside a byte.
    std::byte bytes[17] = {};
    std::memcpy(bytes, &low, 8);
    const unsigned bit = 4 * width_;
    std::uint64_t shifted = high << (bit % 8);
    for (unsigned i = bit / 8; i < width_; ++i, shifted >>= 8) {
      bytes[i] |= static_cast<std::byte>(shifted & 0xFFu);
    }
    std::memcpy(target_, bytes, width_);
  }

  void flush_byte() noexcept {
    *target_++ = static_cast<std::byte>(pending_ & 0xFFu);
    pending_ >>= 8;
    pending_bits_ = pending_bits_ > 8 ? pending_bits_ - 8 : 0;
  }

  std::byte* target_;
  const unsigned width_;
  const std::uint32_t mask_;
  std::uint64_t pending_ = 0;
  unsigned pending_bits_ = 0;
};

// Reads elements first..first+count-1 of an array of unsigned numbers into `values`.
// Precondition: `bytes` holds bit_array_bytes(first + count, width) bytes at least.
template <typename T>
inline void unpack_bits(std::span<const std::byte> bytes, std::uint64_t first, std::size_t count,
                        unsigned width, T* values) noexcept {
  std::size_t done = 0;
  const auto one = [&](std::size_t i) {
    values[i] = static_cast<T>(bit_array_get(bytes, first + i, width));
  };
  if (width == 8) {
    const std::byte* at = bytes.data() + first;
    for (; done < count; ++done)
      values[done] = static_cast<T>(std::to_integer<std::uint8_t>(at[done]));
  } else if (width == 16) {
    const std::byte* at = bytes.data() + 2 * first;
    for (; done < count; ++done)
      values[done] = static_cast<T>(load_le<std::uint16_t>(at + 2 * done));
  } else if (width == 4) {
    if (first % 2 != 0 && count > 0) one(done++);
    const std::byte* at = bytes.data() + (first + done) / 2;
    const std::size_t pairs = (count - done) / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      const auto both = std::to_integer<unsigned>(at[i]);
      values[done + 2 * i] = static_cast<T>(both & 15u);
      values[done + 2 * i + 1] = static_cast<T>(both >> 4);
    }
    done += 2 * pairs;
  }
  for (; done < count; ++done) one(done);
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_BIT_ARRAY_H_
