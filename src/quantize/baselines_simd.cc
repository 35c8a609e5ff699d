// The kernels of the baselines for each vector target: the plain loops, compiled for it.
#include "core/counter_rng.h"
#include "quantize/group_sums_loops.h"
#include "quantize/hadamard_loops.h"
#include "quantize/levels_loops.h"
#include "quantize/mx_loops.h"
#include "quantize/natural_loops.h"
#include "quantize/run_noise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/baselines_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

void fill_noise_loop(std::uint64_t key, std::uint64_t first, std::size_t count,
                     std::uint32_t* pairs) {
  fill_noise(key, first, count, pairs);
}

std::size_t natural_quantize_loop(const std::byte* values, std::size_t count,
                                  const std::uint16_t* noise, std::uint16_t* codes) {
  return loops::natural_quantize(values, count, noise, codes);
}

std::size_t natural_dequantize_loop(const std::uint16_t* codes, std::size_t count,
                                    std::byte* values) {
  return loops::natural_dequantize(codes, count, values);
}

void levels_quantize_stochastic_loop(const std::byte* values, std::size_t count, float scale,
                                     unsigned bits, const std::uint16_t* noise,
                                     std::int8_t* integers) {
  return loops::levels_quantize_stochastic(values, count, scale, bits, noise, integers);
}

bool levels_dequantize_loop(const std::uint8_t* patterns, std::size_t count, float unit,
                            unsigned bits, std::byte* values) {
  return loops::levels_dequantize(patterns, count, unit, bits, values);
}

void mx_quantize_loop(const std::byte* values, std::size_t count, std::uint8_t scale,
                      const MxElement& element, std::uint8_t* codes) {
  return loops::mx_quantize(values, count, scale, element, codes);
}

bool mx_dequantize_loop(const std::uint8_t* codes, std::size_t count, std::uint8_t scale,
                        const MxElement& element, std::byte* values) {
  return loops::mx_dequantize(codes, count, scale, element, values);
}

void flip_signs_loop(float* values, const std::uint32_t* signs, std::size_t count) {
  return loops::flip_signs(values, signs, count);
}

void hadamard_loop(float* values, std::size_t count) { return loops::hadamard(values, count); }

std::uint32_t largest_magnitude_loop(const std::byte* values, std::size_t count) {
  return loops::largest_magnitude(values, count);
}

float norm_up_loop(const std::byte* values, std::size_t count, std::uint32_t largest) {
  return loops::norm_up(values, count, largest);
}

float rms_up_loop(const std::byte* values, std::size_t count, std::uint32_t largest,
                  double factor) {
  return loops::rms_up(values, count, largest, factor);
}

SignMeans sign_means_loop(const std::byte* values, std::size_t count, std::uint32_t largest) {
  return loops::sign_means(values, count, largest);
}

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(fill_noise_loop);
HWY_EXPORT(natural_quantize_loop);
HWY_EXPORT(natural_dequantize_loop);
HWY_EXPORT(levels_quantize_stochastic_loop);
HWY_EXPORT(levels_dequantize_loop);
HWY_EXPORT(mx_quantize_loop);
HWY_EXPORT(mx_dequantize_loop);
HWY_EXPORT(flip_signs_loop);
HWY_EXPORT(hadamard_loop);
HWY_EXPORT(largest_magnitude_loop);
HWY_EXPORT(norm_up_loop);
HWY_EXPORT(rms_up_loop);
HWY_EXPORT(sign_means_loop);

}  // namespace

void fill_noise_simd(std::uint64_t key, std::uint64_t first, std::size_t count,
                     std::uint32_t* pairs) noexcept {
  GRADWIRE_DISPATCH(fill_noise_loop)(key, first, count, pairs);
}

std::size_t natural_quantize_simd(const std::byte* values, std::size_t count,
                                  const std::uint16_t* noise, std::uint16_t* codes) noexcept {
  return GRADWIRE_DISPATCH(natural_quantize_loop)(values, count, noise, codes);
}

std::size_t natural_dequantize_simd(const std::uint16_t* codes, std::size_t count,
                                    std::byte* values) noexcept {
  return GRADWIRE_DISPATCH(natural_dequantize_loop)(codes, count, values);
}

void levels_quantize_stochastic_simd(const std::byte* values, std::size_t count, float scale,
                                     unsigned bits, const std::uint16_t* noise,
                                     std::int8_t* integers) noexcept {
  return GRADWIRE_DISPATCH(levels_quantize_stochastic_loop)(values, count, scale, bits, noise,
                                                            integers);
}

bool levels_dequantize_simd(const std::uint8_t* patterns, std::size_t count, float unit,
                            unsigned bits, std::byte* values) noexcept {
  return GRADWIRE_DISPATCH(levels_dequantize_loop)(patterns, count, unit, bits, values);
}

void mx_quantize_simd(const std::byte* values, std::size_t count, std::uint8_t scale,
                      const MxElement& element, std::uint8_t* codes) noexcept {
  return GRADWIRE_DISPATCH(mx_quantize_loop)(values, count, scale, element, codes);
}

bool mx_dequantize_simd(const std::uint8_t* codes, std::size_t count, std::uint8_t scale,
                        const MxElement& element, std::byte* values) noexcept {
  return GRADWIRE_DISPATCH(mx_dequantize_loop)(codes, count, scale, element, values);
}

void flip_signs_simd(float* values, const std::uint32_t* signs, std::size_t count) noexcept {
  return GRADWIRE_DISPATCH(flip_signs_loop)(values, signs, count);
}

void hadamard_simd(float* values, std::size_t count) noexcept {
  return GRADWIRE_DISPATCH(hadamard_loop)(values, count);
}

std::uint32_t largest_magnitude_simd(const std::byte* values, std::size_t count) noexcept {
  return GRADWIRE_DISPATCH(largest_magnitude_loop)(values, count);
}

float norm_up_simd(const std::byte* values, std::size_t count, std::uint32_t largest) noexcept {
  return GRADWIRE_DISPATCH(norm_up_loop)(values, count, largest);
}

float rms_up_simd(const std::byte* values, std::size_t count, std::uint32_t largest,
                  double factor) noexcept {
  return GRADWIRE_DISPATCH(rms_up_loop)(values, count, largest, factor);
}

SignMeans sign_means_simd(const std::byte* values, std::size_t count,
                          std::uint32_t largest) noexcept {
  return GRADWIRE_DISPATCH(sign_means_loop)(values, count, largest);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
