// What an ErrorFeedback does inside an all_reduce: see gradwire/error_feedback.h for the rule.
//
// For each segment: compensate(), then settle() with what the receivers decode, or settle_own()
// where nothing was encoded, while the values are still there. All of them want an FpEnvironment
// around them.
#ifndef GRADWIRE_COLLECTIVE_ERROR_FEEDBACK_IMPL_H_
#define GRADWIRE_COLLECTIVE_ERROR_FEEDBACK_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/feedback_kernels.h"
#include "collective/schedule.h"
#include "gradwire/collective.h"
#include "gradwire/error_feedback.h"

namespace gradwire {

struct ErrorFeedback::Impl {
  // What is kept of one part. All-zero bytes are zeros of either type.
  struct Entry {
    DType dtype = DType::kFloat32;
    std::vector<std::byte> residuals;
    std::vector<std::byte> velocities;  // as long as the residuals, or empty without momentum
    std::uint64_t first_call = 0;       // that made this entry; 0: it was restored
    std::uint64_t call = 0;             // the last one that had this part
  };
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // tensor and first_index
  using Entries = std::map<Key, Entry>;
  // Where the entry of a call's flat tensor lies, from `first_value` to the next run.
  struct Run {
    std::uint64_t first_value = 0;
    Entry* entry = nullptr;
  };

  // Finds the entries of `parts`, or makes them of zeros, for a call whose segments have up to
  // `segment_values` values of `dtype`. Errors: kInvalidArgument (a part twice, or of another size
  // or type than before), kOutOfMemory; after one no entry has been made. May throw
  // std::bad_alloc, likewise.
  Status begin(const ErrorFeedbackSettings& settings, std::span<const PartLayout> parts,
               DType dtype, std::uint64_t segment_values);

  // y of the segment's pieces, which lie one after the other at `values`. Valid until the next
  // call.
  const std::byte* compensate(std::span<const internal::SegmentPiece> pieces,
                              const std::byte* values) noexcept;
  // e' and u' from the same values.
  void settle(std::span<const internal::SegmentPiece> pieces, const std::byte* values,
              const std::byte* decoded) noexcept;
  // Those of this rank's own shard.
  void settle_own(std::span<const internal::SegmentPiece> pieces, const std::byte* values) noexcept;
  // After a call that went well: e' = 0 if a reset is due at the end of `step`.
  void finish(const ErrorFeedbackSettings& settings, std::uint64_t step) noexcept;
  // e' = u' = 0 for all parts of the call.
  void abandon() noexcept;

  Status find_runs(std::span<const PartLayout> parts, bool momentum);
  Result<Entry*> entry_of(const PartLayout& part, bool momentum);
  // Of the first value of a piece that is not empty.
  internal::FeedbackState state_of(const internal::SegmentPiece& piece) const noexcept;

  Entries entries;

  // Of the call under way, or the last one.
  std::uint64_t call = 0;
  DType dtype = DType::kFloat32;           // of its values
  DType residual_dtype = DType::kFloat32;  // of what is kept
  internal::FeedbackRule rule;
  std::vector<Run> runs;        // its parts in order, without empty ones
  std::vector<std::byte> sent;  // y of one segment
};

namespace internal {

Error feedback_error(ErrorCode code, std::string field, std::string message);
// False if a value is NaN or infinite; the values are float32 or float64.
bool all_finite(const ConstTensorView& view) noexcept;

}  // namespace internal
}  // namespace gradwire

#endif  // GRADWIRE_COLLECTIVE_ERROR_FEEDBACK_IMPL_H_
