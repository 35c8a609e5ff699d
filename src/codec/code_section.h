// The second section of grouped blocks (docs/format.md 4.4): codes of fixed width, or Elias codes
// of integers (4.6). A writer and a reader for each, with the same calls.
#ifndef GRADWIRE_CODEC_CODE_SECTION_H_
#define GRADWIRE_CODEC_CODE_SECTION_H_

#include <optional>

#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/elias.h"

namespace gradwire::internal {

// Writers: begin() once, append() for the codes of each group, finish(); each returns false if
// there is no room. Codes are patterns of `bits` bits; more bits of them do not matter.
class FixedCodeWriter {
 public:
  bool begin(ByteWriter* writer, std::uint64_t count, unsigned bits) noexcept {
    std::span<std::byte> packed;
    if (!writer->take(bit_array_bytes(count, bits), &packed)) return false;
    packer_.emplace(packed.data(), bits);
    return true;
  }
  bool append(const std::uint8_t* codes, std::size_t count) noexcept {
    packer_->append(codes, count);
    return true;
  }
  bool finish(ByteWriter*) noexcept {
    packer_->finish();
    return true;
  }

 private:
  std::optional<BitPacker> packer_;
};

// Takes the rest of what is to be written to until it knows how much it needs.
class EliasCodeWriter {
 public:
  bool begin(ByteWriter* writer, std::uint64_t, unsigned) noexcept {
    ByteWriter ahead = *writer;
    std::span<std::byte> rest;
    if (!ahead.take(sizeof(std::uint32_t), &rest) || !ahead.take(ahead.remaining(), &rest)) {
      return false;
    }
    bits_.emplace(rest);
    return true;
  }
  bool append(const std::uint8_t* codes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      const auto q = static_cast<std::int8_t>(codes[i]);
      const unsigned negative = q < 0 ? 1 : 0;
      BitString code = kEliasCodes[static_cast<std::uint32_t>(negative ? -q : q) + 1];
      if (q != 0) {
        code.bits = static_cast<std::uint16_t>(code.bits | negative << code.length);
        ++code.length;
      }
      if (!bits_->put(code)) return false;
    }
    return true;
  }
  bool finish(ByteWriter* writer) noexcept {
    std::span<std::byte> codes;
    return bits_->finish() && writer->write(static_cast<std::uint32_t>(bits_->bytes())) &&
           writer->take(bits_->bytes(), &codes);
  }

 private:
  std::optional<BitWriter> bits_;
};

// Readers: begin() once, next() for the codes of each group, at_end(); each returns null, or what
// is wrong.
class FixedCodeReader {
 public:
  const char* begin(ByteReader* reader, std::uint64_t count, unsigned bits) noexcept {
    bits_ = bits;
    const bool fits = reader->take(bit_array_bytes(count, bits), &packed_);
    return fits ? nullptr : "shorter than its scales and codes";
  }
  const char* next(std::uint8_t* codes, std::size_t count) noexcept {
    unpack_bits(packed_, read_, count, bits_, codes);
    read_ += count;
    return nullptr;
  }
  const char* at_end() const noexcept { return nullptr; }

 private:
  unsigned bits_ = 0;
  std::span<const std::byte> packed_;
  std::uint64_t read_ = 0;
};

class EliasCodeReader {
 public:
  const char* begin(ByteReader* reader, std::uint64_t, unsigned bits) noexcept {
    most_ = (1u << (bits - 1)) - 1;
    mask_ = (1u << bits) - 1;
    std::uint32_t length = 0;
    std::span<const std::byte> codes;
    if (!reader->read(&length) || !reader->take(length, &codes)) {
      return "shorter than its scales and codes";
    }
    bits_.emplace(codes);
    return nullptr;
  }
  const char* next(std::uint8_t* codes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      unsigned negative = 0;
      if (!bits_->elias(&number) || number > most_ + 1) return "an Elias code is out of range";
      const std::uint32_t level = number - 1;
      if (level != 0 && !bits_->bit(&negative)) return "its Elias codes end too early";
      codes[i] = static_cast<std::uint8_t>((negative != 0 ? 0u - level : level) & mask_);
    }
    return nullptr;
  }
  const char* at_end() const noexcept {
    return bits_->at_end() ? nullptr : "its Elias codes do not fill their section";
  }

 private:
  std::uint32_t most_ = 0;
  std::uint32_t mask_ = 0;
  std::optional<BitReader> bits_;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_CODE_SECTION_H_
