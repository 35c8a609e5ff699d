// Elias' omega code (Elias, "Universal codeword sets", 1975) of the numbers 1 to 255, as
// docs/format.md 4.6 uses it. Bits are read in the order of bit arrays: bit j is bit j mod 8 of
// byte j / 8.
#ifndef GRADWIRE_CORE_ELIAS_H_
#define GRADWIRE_CORE_ELIAS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire::internal {

inline constexpr std::uint32_t kMostElias = 255;

// A string of bits, the first one in bit 0.
struct BitString {
  std::uint16_t bits = 0;
  std::uint8_t length = 0;
};

// 0, with binary(number) in front of it, then binary(length of that - 1) and so on down to 1. At
// most 14 bits: 8 + 3 + 2 + 1. Precondition: 1 <= number <= kMostElias.
constexpr BitString elias_code(std::uint32_t number) noexcept {
  BitString code{0, 1};
  while (number > 1) {
    const unsigned width = static_cast<unsigned>(std::bit_width(number));
    std::uint32_t reversed = 0;  // most significant bit first
    for (unsigned i = 0; i < width; ++i) reversed |= ((number >> i) & 1u) << (width - 1 - i);
    code.bits = static_cast<std::uint16_t>((std::uint32_t{code.bits} << width) | reversed);
    code.length = static_cast<std::uint8_t>(code.length + width);
    number = width - 1;
  }
  return code;
}

inline constexpr auto kEliasCodes = [] {
  std::array<BitString, kMostElias + 1> codes{};
  for (std::uint32_t number = 1; number <= kMostElias; ++number) codes[number] = elias_code(number);
  return codes;
}();

// Writes bits into `target` and stops where it ends.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> target) noexcept : target_(target) {}

  // False if the target is full. Precondition: at most 16 bits, none set beyond the length.
  [[nodiscard]] bool put(BitString string) noexcept {
    pending_ |= std::uint32_t{string.bits} << pending_bits_;
    pending_bits_ += string.length;
    while (pending_bits_ >= 8) {
      if (!flush_byte()) return false;
    }
    return true;
  }
  // Fills the last byte with zeros; false if it has no room.
  [[nodiscard]] bool finish() noexcept { return pending_bits_ == 0 || flush_byte(); }
  std::size_t bytes() const noexcept { return written_; }

 private:
  bool flush_byte() noexcept {
    if (written_ == target_.size()) return false;
    target_[written_++] = static_cast<std::byte>(pending_ & 0xFFu);
    pending_ >>= 8;
    pending_bits_ = pending_bits_ > 8 ? pending_bits_ - 8 : 0;
    return true;
  }

  const std::span<std::byte> target_;
  std::size_t written_ = 0;
  std::uint32_t pending_ = 0;
  unsigned pending_bits_ = 0;
};

// Reads bits of bytes that may be anything.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  // The next 0 or 1; false where the bytes end.
  [[nodiscard]] bool bit(unsigned* value) noexcept {
    if (at_ / 8 >= bytes_.size()) return false;
    *value =
        (std::to_integer<unsigned>(bytes_[static_cast<std::size_t>(at_ / 8)]) >> (at_ % 8)) & 1u;
    ++at_;
    return true;
  }
  // The next number of 1 to kMostElias; false if there is none. Each turn of the loop but the first
  // two makes the number at least 2^number, so it ends after four.
  [[nodiscard]] bool elias(std::uint32_t* number) noexcept {
    std::uint32_t value = 1;
    unsigned next = 0;
    while (bit(&next)) {
      if (next == 0) {
        *number = value;
        return true;
      }
      if (value > 7) return false;  // more than eight bits
      std::uint32_t longer = 1;
      for (std::uint32_t i = 0; i < value; ++i) {
        if (!bit(&next)) return false;
        longer = (longer << 1) | next;
      }
      value = longer;
    }
    return false;
  }
  // Whether less than a byte is left, and only zeros.
  bool at_end() const noexcept {
    if ((at_ + 7) / 8 != bytes_.size()) return false;
    return at_ % 8 == 0 || (std::to_integer<unsigned>(bytes_.back()) >> (at_ % 8)) == 0;
  }

 private:
  const std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_ELIAS_H_
