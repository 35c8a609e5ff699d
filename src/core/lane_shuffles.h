// Shuffles of 8 words by a mask of 8 bits, for vectors without compress and expand.
#ifndef GRADWIRE_CORE_LANE_SHUFFLES_H_
#define GRADWIRE_CORE_LANE_SHUFFLES_H_

#include <cstdint>

namespace gradwire::internal {

// For each mask the number of the byte that each byte of the result takes.
struct WordShuffles {
  alignas(16) std::uint8_t bytes[256][16];
};

// The words of the mask one after the other; behind them word 0.
constexpr WordShuffles make_compress_shuffles() noexcept {
  WordShuffles shuffles{};
  for (std::uint32_t mask = 0; mask < 256; ++mask) {
    std::uint32_t to = 0;
    for (std::uint32_t word = 0; word < 8; ++word) {
      if ((mask >> word & 1) == 0) continue;
      shuffles.bytes[mask][to++] = static_cast<std::uint8_t>(2 * word);
      shuffles.bytes[mask][to++] = static_cast<std::uint8_t>(2 * word + 1);
    }
    while (to < 16) {
      shuffles.bytes[mask][to] = to % 2;
      ++to;
    }
  }
  return shuffles;
}

// Words of the mask take one word after the other, the rest is 0 (a number with bit 7 set).
constexpr WordShuffles make_expand_shuffles() noexcept {
  WordShuffles shuffles{};
  for (std::uint32_t mask = 0; mask < 256; ++mask) {
    std::uint32_t from = 0;
    for (std::uint32_t word = 0; word < 8; ++word) {
      const bool taken = (mask >> word & 1) != 0;
      for (std::uint32_t byte = 0; byte < 2; ++byte) {
        shuffles.bytes[mask][2 * word + byte] = static_cast<std::uint8_t>(taken ? from++ : 0x80u);
      }
    }
  }
  return shuffles;
}

inline constexpr WordShuffles kCompressShuffles = make_compress_shuffles();
inline constexpr WordShuffles kExpandShuffles = make_expand_shuffles();

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_LANE_SHUFFLES_H_
