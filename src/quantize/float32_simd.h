// Vector twins of the float32 kernels: same results, bit for bit, as the `_ref` functions of the
// same names, whose comments say what they do. All need round-to-nearest.
#ifndef GRADWIRE_QUANTIZE_FLOAT32_SIMD_H_
#define GRADWIRE_QUANTIZE_FLOAT32_SIMD_H_

#include <cstddef>
#include <cstdint>

#include "quantize/exponent_form_ref.h"
#include "quantize/group_scale_ref.h"
#include "quantize/step_form_ref.h"

namespace gradwire::internal {

GroupScale group_scale_simd(const std::uint32_t* values, std::uint32_t count,
                            std::uint64_t factor) noexcept;
// Of `groups` groups of `group` values, a multiple of 64, one after the other.
void group_scales_simd(const std::uint32_t* values, std::uint32_t group, std::uint32_t groups,
                       std::uint64_t factor, GroupScale* scales) noexcept;

// Of finite values with exponent fields up to `top`.
SquareSum square_sum_simd(const std::uint32_t* values, std::uint32_t count,
                          std::int32_t top) noexcept;

std::uint32_t quantize_step_simd(const std::uint32_t* values, std::uint32_t count, std::int32_t k,
                                 std::uint32_t q_max, std::uint8_t* tokens,
                                 std::uint16_t* lane_bits) noexcept;
[[nodiscard]] bool dequantize_step_simd(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                                        std::uint32_t count, std::int32_t k,
                                        std::uint32_t* values) noexcept;

std::uint32_t collect_mantissas_simd(const std::byte* values, std::uint64_t count) noexcept;
std::uint32_t quantize_exponent_simd(const std::uint32_t* values, std::uint32_t count,
                                     std::int32_t top, MantissaSplit split, TokenRange range,
                                     std::uint8_t* tokens, std::uint16_t* lane_bits,
                                     std::byte* plane) noexcept;
void round_mantissa_simd(const std::uint32_t* values, std::uint32_t count, std::uint32_t mantissa,
                         std::uint32_t* rounded) noexcept;
[[nodiscard]] bool dequantize_exponent_simd(const std::uint8_t* tokens,
                                            const std::uint16_t* lane_bits, const std::byte* plane,
                                            std::uint32_t count, std::int32_t top,
                                            MantissaSplit split, std::uint32_t* values) noexcept;

// True if a token of the group is the escape.
bool any_escape_simd(const std::uint8_t* tokens, std::uint32_t count) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_FLOAT32_SIMD_H_
