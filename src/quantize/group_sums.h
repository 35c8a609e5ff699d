// Largest magnitude, norm and means of a group of float32 values (docs/format.md section 8), from
// integer sums, so that no order of summation and no rounding mode can change them. Pure loops over
// 1 to 4096 unaligned values.
#ifndef GRADWIRE_QUANTIZE_GROUP_SUMS_H_
#define GRADWIRE_QUANTIZE_GROUP_SUMS_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

// Bit pattern of the largest magnitude of any number of values; above kFloat32Inf if a value is
// NaN.
std::uint32_t largest_magnitude_ref(const std::byte* values, std::size_t count) noexcept;

// The least whole number of units, 2^-16 of the power of two above the largest magnitude, that is
// not below the L2 norm when each magnitude is rounded up to units. Above the norm by less than
// sqrt(count) + 2 units. Precondition: `largest` is largest_magnitude_ref() of the values, finite.
float norm_up_ref(const std::byte* values, std::size_t count, std::uint32_t largest) noexcept;

// `factor` times the root mean square, with the magnitudes rounded up as above; 1 <= factor <= 8.
float rms_up_ref(const std::byte* values, std::size_t count, std::uint32_t largest,
                 double factor) noexcept;

struct SignMeans {
  float positive = 0;  // mean of the values that are not negative; 0 if there is none
  float negative = 0;  // mean magnitude of the negative ones; 0 if there is none
};
// Precondition as above.
SignMeans sign_means_ref(const std::byte* values, std::size_t count,
                         std::uint32_t largest) noexcept;

// The same, compiled for each vector target; src/quantize/baselines_simd.cc.
std::uint32_t largest_magnitude_simd(const std::byte* values, std::size_t count) noexcept;
float norm_up_simd(const std::byte* values, std::size_t count, std::uint32_t largest) noexcept;
float rms_up_simd(const std::byte* values, std::size_t count, std::uint32_t largest,
                  double factor) noexcept;
SignMeans sign_means_simd(const std::byte* values, std::size_t count,
                          std::uint32_t largest) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_GROUP_SUMS_H_
