// Values to tokens, lane bits and plane of the exponent form, and back.
#ifndef GRADWIRE_QUANTIZE_EXPONENT_FORM_REF_H_
#define GRADWIRE_QUANTIZE_EXPONENT_FORM_REF_H_

#include <cstddef>
#include <cstdint>

#include "quantize/exponent_form_format.h"
#include "quantize/float_format.h"

namespace gradwire::internal {

// Tokens the encoder may use besides zero and escape.
struct TokenRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// Trailing mantissa bits beyond these are zero in all finite values: M of `lossless`, given the
// mantissas of all of them OR-ed together.
template <typename Format>
std::uint32_t used_mantissa_bits(typename Format::Wide mantissas) noexcept;
// The mantissas of the finite values OR-ed together. `values` needs no alignment.
template <typename Format>
typename Format::Wide collect_mantissas(const std::byte* values, std::uint64_t count) noexcept;

// Lossless: every finite value with a token in `range` has its M mantissa bits kept, the lower ones
// are zero; the others become escapes. lane_bits[i] gets the lane bits at the top of 16, zeros
// below; plane gets count x plane_bytes bytes (0 for zeros and escapes). Returns the number of
// escapes. `top` is T, 0 <= T <= exponent field of Inf.
template <typename Format>
std::uint32_t quantize_exponent_ref(const typename Format::Bits* values, std::uint32_t count,
                                    std::int32_t top, MantissaSplit split, TokenRange range,
                                    std::uint8_t* tokens, std::uint16_t* lane_bits,
                                    std::byte* plane) noexcept;

// Mantissa form of near_lossless: rounds patterns to `mantissa` bits (nearest even) in place, so
// that the function above may code them. Zeros become +0. Values whose rounding is refused
// (subnormals, overflow, non-finite) become NaN, which is an escape; the caller keeps the originals
// for these.
template <typename Format>
void round_mantissa_ref(typename Format::Bits* values, std::uint32_t count,
                        std::uint32_t mantissa) noexcept;

// The inverse of quantize_exponent_ref(); tokens are 0 to 31; what is written for escapes is
// undefined. False if a token names an exponent field below 0 or that of Inf.
template <typename Format>
[[nodiscard]] bool dequantize_exponent_ref(const std::uint8_t* tokens,
                                           const std::uint16_t* lane_bits, const std::byte* plane,
                                           std::uint32_t count, std::int32_t top,
                                           MantissaSplit split,
                                           typename Format::Bits* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_EXPONENT_FORM_REF_H_
