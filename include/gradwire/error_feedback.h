// Error feedback on the worker's side: what a lossy codec took from the values that a rank sent in
// one step is added to what it sends in the next, so that errors do not pile up. For strongly
// biased codecs (sign, top_k); unbiased ones (stochastic rounding) get worse with it.
#ifndef GRADWIRE_ERROR_FEEDBACK_H_
#define GRADWIRE_ERROR_FEEDBACK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gradwire/status.h"
#include "gradwire/tensor_view.h"

namespace gradwire {

// Which feedback; the same on all ranks (a difference is kPeerMismatch).
struct ErrorFeedbackSettings {
  // Weight of the newest error, above 0 and at most 1. 1: classical error feedback. Below 1: a
  // moving average of the errors, as LoCo (Xie et al. 2024, arXiv 2407.04480) for 4 bits.
  float beta = 1;
  // After every so many steps (CollectiveOptions::step) the residuals start again from 0, as LoCo
  // does; 0: never.
  std::uint64_t reset_interval = 0;
  // Momentum correction of Deep Gradient Compression (Lin et al. 2018, arXiv 1712.01887), from 0
  // (none) to below 1: the momentum moves from the optimizer, which then must have none, to the
  // sender, and stops at values that have been sent (momentum factor masking). For codecs that send
  // few of the values. Costs as much memory as the residuals.
  float momentum = 0;
};

// The residuals of one rank, by parameter (PartLayout::tensor and first_index), so that it does not
// matter how parameters are put together into tensors. Given to calls by
// CollectiveOptions::error_feedback.
//
// With x the values of a part, e its residuals and u its velocities, 0 at first, m = momentum, a
// call sends for the owners of other shards y, and keeps e' and u':
//   v = m u + x,  h = v + e,  y = round to dtype(h),  d = decode(encode(y)),
//   e' = (1 - beta) e + beta (h - d),  u' = v where d is 0, else 0
// (without the average for beta = 1, without velocities for m = 0), each operation rounded once to
// float32 (float64 for float64). This rank's own shard enters the sum as y, unrounded by the codec;
// its e' is 0 and its u' is v. So residuals differ from 0 only where another rank owns the values,
// and follow when that changes. Where e and m u are 0, y is x bit for bit. Never passed on: where x
// is NaN or infinite, y is x; where y would be infinite, it is x and e and u are lost; where e' or
// u' would be NaN or infinite, it is 0.
// A call with a part that has another size or type than before is kInvalidArgument, as is one with
// the same part twice. After a call that failed in the exchange the residuals and velocities of its
// parts are 0; a call that failed before (arguments, memory) leaves them as they were.
//
// Deterministic: the same calls give the same bits. Memory: one float32 (float64) per value, two
// with momentum, made at the first call with a part, and two segments; later calls allocate
// nothing. Cost: what is sent is decoded once more, and two passes over the values. Not thread
// safe: one call at a time. Empty at first, and again when moved from.
class ErrorFeedback {
 public:
  ErrorFeedback() noexcept;
  explicit ErrorFeedback(const ErrorFeedbackSettings& settings) noexcept;
  ~ErrorFeedback();
  ErrorFeedback(ErrorFeedback&&) noexcept;
  ErrorFeedback& operator=(ErrorFeedback&&) noexcept;

  // kOutOfRange with the field's name; calls check it too.
  static Status check(const ErrorFeedbackSettings& settings);
  const ErrorFeedbackSettings& settings() const noexcept { return settings_; }

  // Of one part; `values` are float32, or float64 for a float64 tensor. `velocities` are like them
  // with momentum, else without data and of 0 values.
  struct Residual {
    std::uint32_t tensor = 0;
    std::uint64_t first_index = 0;
    ConstTensorView values;
    ConstTensorView velocities;
  };
  // All of them in the order of tensor and first_index; valid until the next call that is given
  // this object, and the next change by a function below.
  std::vector<Residual> residuals() const;

  // Takes a residual over, in place of what the part had; missing velocities count as 0. Errors:
  // kUnsupportedDType (neither float32 nor float64), kInvalidArgument (a value is NaN or infinite,
  // a null pointer, velocities of another size or type, or without momentum), kOutOfMemory.
  Status restore(const Residual& residual);

  // Multiplies all residuals and velocities: what is kept has the units of the values, so a loss
  // scale that changes by `factor` changes it too. Exact for powers of two, as far as the results
  // are normal; a result that is NaN or infinite becomes 0. kOutOfRange unless factor is positive
  // and finite.
  Status scale(double factor);

  // Forgets all parts: the next call starts from 0, with parts of any size.
  void reset() noexcept;

  // All of the state as bytes of a file (docs/error_feedback.md), and back in place of what there
  // is. Errors: kOutOfMemory, and of load(): kTruncated, kTrailingBytes, kBadMagic,
  // kUnsupportedVersion, kBlockChecksum, kBadHeader (field named), kInvalidArgument (other settings
  // than this object's, field named, or a value that is not finite). After one the object is as it
  // was.
  Result<std::vector<std::byte>> save() const;
  Status load(std::span<const std::byte> bytes);

  struct Impl;
  Impl& impl();  // may throw std::bad_alloc

 private:
  ErrorFeedbackSettings settings_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire

#endif  // GRADWIRE_ERROR_FEEDBACK_H_
