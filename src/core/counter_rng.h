// The noise of stochastic rounding: a pure function of seed, step, tensor, sender, phase and
// index (docs/format.md section 8), so that the same value gets the same noise on every machine,
// thread count and shard.
#ifndef GRADWIRE_CORE_COUNTER_RNG_H_
#define GRADWIRE_CORE_COUNTER_RNG_H_

#include <cstddef>
#include <cstdint>

#include "core/always_inline.h"

namespace gradwire::internal {

// The finalizer of splitmix64.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// triple32 (three multiplications, bijective, every output bit depends on every input bit) with an
// addend after the first one: streams with other addends are no permutations of each other. (With
// two multiplications, lowbias32, values 256 apart had a measurable correlation of .001.)
constexpr std::uint32_t mix32(std::uint32_t x, std::uint32_t addend) noexcept {
  x = (x ^ (x >> 17)) * 0xED5AD4BBu + addend;
  x = (x ^ (x >> 11)) * 0xAC4C1B51u;
  x = (x ^ (x >> 15)) * 0x31848BABu;
  return x ^ (x >> 14);
}

// Names one stream of noise.
constexpr std::uint64_t noise_key(std::uint64_t seed, std::uint64_t step, std::uint32_t tensor,
                                  std::uint32_t sender, std::uint8_t phase) noexcept {
  const std::uint64_t place = tensor | (static_cast<std::uint64_t>(sender) << 32);
  return mix64(mix64(mix64(mix64(seed) + step) + place) + phase);
}

// The 32 bits that values 2 `pair` and 2 `pair` + 1 share: low half for the even one.
constexpr std::uint32_t noise_pair(std::uint64_t key, std::uint64_t pair) noexcept {
  const auto low = static_cast<std::uint32_t>(key);
  const auto high = static_cast<std::uint32_t>(key >> 32);
  const auto upper = static_cast<std::uint32_t>(pair >> 32);
  return mix32(static_cast<std::uint32_t>(pair) ^ low, high + upper);
}

// 16 uniform bits for the value with this index inside its parameter.
constexpr std::uint32_t noise16(std::uint64_t key, std::uint64_t index) noexcept {
  const std::uint32_t both = noise_pair(key, index >> 1);
  return (index & 1u) != 0 ? both >> 16 : both & 0xFFFFu;
}

// noise_pair() of `count` pairs from `first` on. On a little-endian host the 16-bit halves of
// `pairs` in memory order are noise16() of the values 2 `first`, 2 `first` + 1, ...
GRADWIRE_ALWAYS_INLINE void fill_noise(std::uint64_t key, std::uint64_t first, std::size_t count,
                                       std::uint32_t* pairs) noexcept {
  const auto low = static_cast<std::uint32_t>(key);
  const auto high = static_cast<std::uint32_t>(key >> 32);
  while (count > 0) {
    // Up to the next multiple of 2^32 the upper half is constant and the loop is 32-bit.
    const std::uint64_t until_wrap = (std::uint64_t{1} << 32) - (first & 0xFFFFFFFFu);
    const std::size_t run = count < until_wrap ? count : static_cast<std::size_t>(until_wrap);
    const auto base = static_cast<std::uint32_t>(first);
    const std::uint32_t addend = high + static_cast<std::uint32_t>(first >> 32);
    for (std::size_t i = 0; i < run; ++i) {
      pairs[i] = mix32((base + static_cast<std::uint32_t>(i)) ^ low, addend);
    }
    first += run;
    pairs += run;
    count -= run;
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_COUNTER_RNG_H_
