// The noise of stochastic rounding: a pure function of seed, step, tensor, sender, phase and
// index (docs/format.md section 8), so that the same value gets the same noise on every machine,
// thread count and shard.
#ifndef GRADWIRE_CORE_COUNTER_RNG_H_
#define GRADWIRE_CORE_COUNTER_RNG_H_

#include <cstdint>

namespace gradwire::internal {

// The finalizer of splitmix64.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// lowbias32: two multiplications, bijective, every output bit depends on every input bit.
constexpr std::uint32_t mix32(std::uint32_t x) noexcept {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
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
  return mix32(mix32(static_cast<std::uint32_t>(pair) ^ low) + high + upper);
}

// 16 uniform bits for the value with this index inside its parameter.
constexpr std::uint32_t noise16(std::uint64_t key, std::uint64_t index) noexcept {
  const std::uint32_t both = noise_pair(key, index >> 1);
  return (index & 1u) != 0 ? both >> 16 : both & 0xFFFFu;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_COUNTER_RNG_H_
