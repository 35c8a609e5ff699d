// Quantizer and coder at once: float32 groups go from values to words and back in vector
// registers, without tokens in memory between. Same bytes, values and verdicts as the stages one
// after the other, which remain for what these kernels do not take: short rows, scales at the ends
// of the range, the last rows of a stream.
#ifndef GRADWIRE_CODEC_FUSED_GROUPS_H_
#define GRADWIRE_CODEC_FUSED_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "entropy/tans_decode_simd.h"
#include "entropy/tans_encode_simd.h"
#include "quantize/exponent_form_ref.h"
#include "quantize/step_form_format.h"

namespace gradwire::internal {

// False where this machine, or GRADWIRE_TARGET, has no such kernels: call none of them.
bool has_fused_groups() noexcept;

// Groups of `group` values each, a multiple of 64, one after the other, and their scales.
struct FusedGroups {
  const std::int16_t* scales = nullptr;
  std::uint32_t group = 0;
  std::uint32_t groups = 0;
};

// Step form: scales the kernels take.
bool fused_step_scale(std::int32_t k) noexcept;
// The same for values of a smaller type as float32: those whose results are all of the type, as
// |q| 2^k < 2^(bias + 1).
template <typename Format>
bool fused_step_scale(std::int32_t k) noexcept {
  return fused_step_scale(k) && k >= Format::kLeastExponent &&
         k <= Format::kBias + 1 - kStepMostBits;
}
// Exponent form, encoder: zeros, subnormals and Inf must be out of the tokens' reach.
bool fused_exponent_scale(std::int32_t top, TokenRange range) noexcept;
// Exponent form, decoder: every token is a normal number.
bool fused_exponent_scale(std::int32_t top) noexcept;

// Where an encoder's output goes. Outliers: as bit patterns, last value first.
struct FusedEncodeOut {
  std::byte* words = nullptr;         // kEncodeSlackWords behind the last may be written
  std::uint32_t* outliers = nullptr;  // room for one per value
};

// Codes the groups from the last to the first. Rounding mode: to nearest even.
void encode_step_groups(const std::uint32_t* values, FusedGroups groups, std::uint32_t q_max,
                        TansVectorEncoder* encoder, FusedEncodeOut* out) noexcept;

struct ExponentParameters {
  MantissaSplit split;
  TokenRange range;
  bool rounds = false;  // `mantissa=M`: rounded to split.mantissa bits; zeros become +0
};
// The values' plane is written to `plane`.
void encode_exponent_groups(const std::uint32_t* values, FusedGroups groups,
                            const ExponentParameters& parameters, TansVectorEncoder* encoder,
                            std::byte* plane, FusedEncodeOut* out) noexcept;

// What the decoder takes outliers from.
struct OutlierCursor {
  const std::byte* next = nullptr;
  std::uint64_t left = 0;
  bool missing = false;  // more escapes than outliers: nothing decoded is of use
};

// Decodes groups from the first on, as long as the stream surely holds a whole group. Values are
// stored, or added to what is there. Returns the number of groups done.
std::uint32_t decode_step_groups(FusedGroups groups, TansDecoder* decoder,
                                 TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                                 std::uint32_t* values) noexcept;
std::uint32_t decode_exponent_groups(FusedGroups groups, MantissaSplit split,
                                     const std::byte* plane, TansDecoder* decoder,
                                     TansVectorDecoder* vector, OutlierCursor* outliers, bool add,
                                     std::uint32_t* values) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_FUSED_GROUPS_H_
