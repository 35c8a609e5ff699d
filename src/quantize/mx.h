// Kernels of codecs `mxfp8` and `mxfp4`, one group at a time. Pure loops without errors or
// allocation; float32 values need no alignment; the environment is that of FpEnvironment.
#ifndef GRADWIRE_QUANTIZE_MX_H_
#define GRADWIRE_QUANTIZE_MX_H_

#include <cstddef>

#include "quantize/mx_format.h"

namespace gradwire::internal {

// The scale of a group whose largest magnitude has this bit pattern; kMxRawScale for NaN and Inf.
std::uint8_t mx_scale(std::uint32_t largest, const MxElement& element) noexcept;

// Codes of a group with that scale, not kMxRawScale: rounded to nearest even, saturated.
void mx_quantize_ref(const std::byte* values, std::size_t count, std::uint8_t scale,
                     const MxElement& element, std::uint8_t* codes) noexcept;

// Values of `count` codes; exact. False, with `values` unspecified, if a code is Inf or NaN.
// `scale`: at most 254 - element.top, so that all values are finite.
bool mx_dequantize_ref(const std::uint8_t* codes, std::size_t count, std::uint8_t scale,
                       const MxElement& element, std::byte* values) noexcept;

// The same, compiled for each vector target; src/quantize/baselines_simd.cc.
void mx_quantize_simd(const std::byte* values, std::size_t count, std::uint8_t scale,
                      const MxElement& element, std::uint8_t* codes) noexcept;
bool mx_dequantize_simd(const std::uint8_t* codes, std::size_t count, std::uint8_t scale,
                        const MxElement& element, std::byte* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_MX_H_
