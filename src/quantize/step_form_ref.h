// Values to tokens and lane bits of the step form, and back.
//
// A float32 whose unit is 2^-14 holds the token in its bits 26 to 22: the exponent field of
// m-bit |q| is 112 + m, whose low four bits are m (m <= 11), the highest mantissa bit is the bit
// below the leading one, and 0 is all zeros. The mantissa bits below are the rest of |q|.
#ifndef GRADWIRE_QUANTIZE_STEP_FORM_REF_H_
#define GRADWIRE_QUANTIZE_STEP_FORM_REF_H_

#include <cstdint>

#include "quantize/float_format.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {

// q = x / 2^k to nearest even for `count` patterns; k in the range of the type. Values that are
// not finite, with |q| > q_max (at most 2047) or with a result beyond the type become escapes.
// lane_bits[i] gets the lane bits at the top of 16, zeros below. Returns the number of escapes.
// float32 needs round-to-nearest.
std::uint32_t quantize_step_ref(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                                std::uint32_t q_max, std::uint8_t* tokens,
                                std::uint16_t* lane_bits) noexcept;

std::uint32_t quantize_step_ref(const std::uint64_t* values, std::uint32_t count, std::int32_t k,
                                std::uint32_t q_max, std::uint8_t* tokens,
                                std::uint16_t* lane_bits) noexcept;

// The inverse; tokens exist or are the escape, whose values are left undefined (but written).
// False if a result is not finite.
[[nodiscard]] bool dequantize_step_ref(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                                       std::uint32_t count, std::int32_t k,
                                       std::uint32_t* values) noexcept;
[[nodiscard]] bool dequantize_step_ref(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                                       std::uint32_t count, std::int32_t k,
                                       std::uint64_t* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_STEP_FORM_REF_H_
