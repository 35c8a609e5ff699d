// The noise of consecutive values of a parameter.
#ifndef GRADWIRE_QUANTIZE_RUN_NOISE_H_
#define GRADWIRE_QUANTIZE_RUN_NOISE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gradwire::internal {

// fill_noise() of core/counter_rng.h, with the vector target's instructions.
void fill_noise_simd(std::uint64_t key, std::uint64_t first, std::size_t count,
                     std::uint32_t* pairs) noexcept;

// Memory for the noise of a run, filled again and again.
class RunNoise {
 public:
  static constexpr std::size_t kMostValues = 4096;

  // noise16() of the `count` values from `index` on, count at most kMostValues. Valid until the
  // next call.
  const std::uint16_t* fill(std::uint64_t key, std::uint64_t index, std::size_t count) noexcept {
    // Noise comes in pairs that start at even indices; an odd start skips one half.
    const std::size_t skipped = index % 2;
    fill_noise_simd(key, index / 2, (skipped + count + 1) / 2, pairs_.data());
    std::memcpy(halves_.data(), pairs_.data(), sizeof(std::uint16_t) * (skipped + count));
    return halves_.data() + skipped;
  }

 private:
  std::array<std::uint32_t, kMostValues / 2 + 1> pairs_;
  std::array<std::uint16_t, kMostValues + 2> halves_;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_RUN_NOISE_H_
