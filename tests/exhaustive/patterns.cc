#include <bit>
#include <cstdio>

#include "exhaustive/cases.h"

namespace gradwire::test {

void float32_chunk(std::uint64_t chunk, std::span<std::uint32_t, kChunkValues> patterns) {
  const auto upper_exponent = static_cast<std::uint32_t>(chunk >> 16) << 27;
  const auto upper_mantissa = static_cast<std::uint32_t>(chunk & 0xFFFF) << 7;
  for (std::uint32_t i = 0; i < kChunkValues; ++i) {
    // An odd factor permutes the 12 bits: neighbours differ in sign, exponent and mantissa.
    const std::uint32_t low = (i * 2731u) & 0xFFFu;
    patterns[i] =
        (low & 1) << 31 | upper_exponent | ((low >> 1) & 15) << 23 | upper_mantissa | low >> 5;
  }
}

std::string finding(std::uint32_t given, std::uint32_t decoded, std::string_view what) {
  char text[160];
  std::snprintf(text, sizeof(text), "pattern %08X (%a) became %08X (%a): %.*s", given,
                static_cast<double>(std::bit_cast<float>(given)), decoded,
                static_cast<double>(std::bit_cast<float>(decoded)), static_cast<int>(what.size()),
                what.data());
  return text;
}

}  // namespace gradwire::test
