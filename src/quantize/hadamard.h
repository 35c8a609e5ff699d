// The randomized Hadamard rotation of codec `hadamard` (docs/format.md 4.8). float32 additions in a
// fixed order, no multiplications: the same bits on every machine. The environment is that of
// FpEnvironment.
#ifndef GRADWIRE_QUANTIZE_HADAMARD_H_
#define GRADWIRE_QUANTIZE_HADAMARD_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

// Flips the sign of values[i] where signs[i] is 0x80000000; signs[i] is 0 elsewhere.
void flip_signs_ref(float* values, const std::uint32_t* signs, std::size_t count) noexcept;

// values = H values, with the Hadamard matrix of `count` rows in Sylvester's order, entries 1 and
// -1. `count`: a power of two. H H = count, so a second time and a division give the values back.
void hadamard_ref(float* values, std::size_t count) noexcept;

// The same, compiled for each vector target; src/quantize/baselines_simd.cc.
void flip_signs_simd(float* values, const std::uint32_t* signs, std::size_t count) noexcept;
void hadamard_simd(float* values, std::size_t count) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_HADAMARD_H_
