// The arithmetic of error feedback: what is sent in place of the values, and what is kept of them.
// Kernels without errors; the rule is that of gradwire/error_feedback.h.
//
// For one value with x its bits, e and u the residual and the velocity (0 without momentum), all in
// float32 (float64 for float64) and every operation rounded once to nearest even:
//   v = m u + x,  h = v + e,  y = h rounded to the type of x
//   The value is compensated unless x is NaN or infinite, y would be infinite, or m u = e = 0.
//   Else y is x bit for bit (-0 stays -0), v and h are x, and e counts as 0.
// with d the decoded value:
//   r = h - d, and with beta < 1: r = (1 - beta) e + beta r
//   e' = r, or 0 where that is NaN or infinite
//   u' = v, or 0 where that is NaN or infinite, or where d is not 0 (momentum factor masking).
//
// Preconditions: dtype is float32, float64, float16 or bfloat16; residuals and velocities are of
// its accumulator_dtype(); pointers need no alignment and do not overlap; the caller keeps an
// FpEnvironment around them.
// Deterministic: each value by itself, no reassociation; the vector kernels give the same bytes.
#ifndef GRADWIRE_CODEC_FEEDBACK_KERNELS_H_
#define GRADWIRE_CODEC_FEEDBACK_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "gradwire/tensor_view.h"

namespace gradwire::internal {

struct FeedbackRule {
  float beta = 1;      // in (0, 1]
  float momentum = 0;  // m, in [0, 1); with 0 there are no velocities
};

// What the rank keeps of the values, moved along with them.
struct FeedbackState {
  std::byte* residuals = nullptr;
  std::byte* velocities = nullptr;  // null if the rule has no momentum
};

// The state `bytes` further on.
inline FeedbackState advanced(const FeedbackState& state, std::size_t bytes) noexcept {
  return {state.residuals + bytes,
          state.velocities != nullptr ? state.velocities + bytes : nullptr};
}

// sent = y.
void compensate(DType dtype, const FeedbackRule& rule, const std::byte* values,
                const FeedbackState& state, std::byte* sent, std::uint64_t count) noexcept;
// state = e', u', from the same values and what the receivers decode.
void keep_rest(DType dtype, const FeedbackRule& rule, const std::byte* values,
               const std::byte* decoded, const FeedbackState& state, std::uint64_t count) noexcept;

// The executable form of the rule.
void compensate_ref(DType dtype, const FeedbackRule& rule, const std::byte* values,
                    const FeedbackState& state, std::byte* sent, std::uint64_t count) noexcept;
void keep_rest_ref(DType dtype, const FeedbackRule& rule, const std::byte* values,
                   const std::byte* decoded, const FeedbackState& state,
                   std::uint64_t count) noexcept;

// For values that are sent as they are: e' = 0, u' = v without the masking, which is for momentum
// that has gone stale.
void keep_velocities(DType dtype, const FeedbackRule& rule, const std::byte* values,
                     const FeedbackState& state, std::uint64_t count) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_FEEDBACK_KERNELS_H_
