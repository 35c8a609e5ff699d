// Error feedback inside a call.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "codec/accumulate.h"
#include "collective/error_feedback_impl.h"
#include "core/status_macros.h"

namespace gradwire {
namespace {

using internal::feedback_error;
using internal::SegmentPiece;

Error changed_error(const PartLayout& part, std::string field, std::string mine,
                    std::string theirs) {
  Error error =
      feedback_error(ErrorCode::kInvalidArgument, std::move(field),
                     "parameter " + std::to_string(part.tensor) + " has " + mine + " now and had " +
                         theirs + " when its residuals were kept; reset() forgets them");
  error.mine = std::move(mine);
  error.theirs = std::move(theirs);
  return error;
}

void clear(std::vector<std::byte>& bytes) noexcept {
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
}

}  // namespace

Status ErrorFeedback::Impl::begin(const ErrorFeedbackSettings& settings,
                                  std::span<const PartLayout> parts, DType values_dtype,
                                  std::uint64_t segment_values) {
  ++call;
  dtype = values_dtype;
  residual_dtype = *internal::accumulator_dtype(values_dtype);
  rule = {settings.beta, settings.momentum};
  runs.clear();
  const std::size_t bytes = segment_values * dtype_size(dtype);
  if (sent.size() < bytes) sent.resize(bytes);
  const auto drop_new = [this] {
    runs.clear();
    std::erase_if(entries, [this](const auto& item) { return item.second.first_call == call; });
  };
  try {
    const Status found = find_runs(parts, settings.momentum != 0);
    if (!found.ok()) {
      drop_new();
      return found;
    }
  } catch (...) {
    drop_new();
    throw;
  }
  return {};
}

Status ErrorFeedback::Impl::find_runs(std::span<const PartLayout> parts, bool momentum) {
  std::uint64_t first_value = 0;
  for (const PartLayout& part : parts) {
    if (part.values == 0) continue;
    GRADWIRE_ASSIGN_OR_RETURN(Entry* const entry, entry_of(part, momentum));
    runs.push_back({first_value, entry});
    first_value += part.values;
  }
  return {};
}

Result<ErrorFeedback::Impl::Entry*> ErrorFeedback::Impl::entry_of(const PartLayout& part,
                                                                  bool momentum) {
  const std::size_t size = dtype_size(residual_dtype);
  const auto [found, is_new] = entries.try_emplace({part.tensor, part.first_index});
  Entry& entry = found->second;
  if (is_new) {
    entry.first_call = call;
    if (part.values > entry.residuals.max_size() / size) {
      return feedback_error(ErrorCode::kOutOfMemory, "values",
                            "no memory for " + std::to_string(part.values) + " residuals");
    }
    entry.dtype = residual_dtype;
    entry.residuals.resize(part.values * size);
    if (momentum) entry.velocities.resize(part.values * size);
  } else if (entry.call == call) {
    return feedback_error(ErrorCode::kInvalidArgument, "parts",
                          "parameter " + std::to_string(part.tensor) + " is there twice");
  }
  if (entry.dtype != residual_dtype) {
    return changed_error(part, "dtype", "residuals of " + std::string(dtype_name(residual_dtype)),
                         std::string(dtype_name(entry.dtype)));
  }
  if (entry.residuals.size() / size != part.values) {
    return changed_error(part, "values", std::to_string(part.values) + " values",
                         std::to_string(entry.residuals.size() / size));
  }
  entry.call = call;
  return &entry;
}

internal::FeedbackState ErrorFeedback::Impl::state_of(const SegmentPiece& piece) const noexcept {
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), piece.first_value,
                       [](std::uint64_t value, const Run& run) { return value < run.first_value; });
  const Run& run = *(after - 1);
  const std::uint64_t first = piece.first_value - run.first_value;
  internal::FeedbackState state{run.entry->residuals.data(), nullptr};
  if (rule.momentum != 0) state.velocities = run.entry->velocities.data();
  return internal::advanced(state, static_cast<std::size_t>(first) * dtype_size(residual_dtype));
}

const std::byte* ErrorFeedback::Impl::compensate(std::span<const SegmentPiece> pieces,
                                                 const std::byte* values) noexcept {
  std::size_t at = 0;
  for (const SegmentPiece& piece : pieces) {
    if (piece.values == 0) continue;
    internal::compensate(dtype, rule, values + at, state_of(piece), sent.data() + at, piece.values);
    at += piece.values * dtype_size(dtype);
  }
  return sent.data();
}

void ErrorFeedback::Impl::settle(std::span<const SegmentPiece> pieces, const std::byte* values,
                                 const std::byte* decoded) noexcept {
  std::size_t at = 0;
  for (const SegmentPiece& piece : pieces) {
    if (piece.values == 0) continue;
    internal::keep_rest(dtype, rule, values + at, decoded + at, state_of(piece), piece.values);
    at += piece.values * dtype_size(dtype);
  }
}

void ErrorFeedback::Impl::settle_own(std::span<const SegmentPiece> pieces,
                                     const std::byte* values) noexcept {
  std::size_t at = 0;
  for (const SegmentPiece& piece : pieces) {
    if (piece.values == 0) continue;
    internal::keep_velocities(dtype, rule, values + at, state_of(piece), piece.values);
    at += piece.values * dtype_size(dtype);
  }
}

void ErrorFeedback::Impl::finish(const ErrorFeedbackSettings& settings,
                                 std::uint64_t step) noexcept {
  // Not (step + 1) % interval == 0, as step + 1 may wrap around.
  if (settings.reset_interval == 0) return;
  if (step % settings.reset_interval != settings.reset_interval - 1) return;
  for (const Run& run : runs) clear(run.entry->residuals);
}

void ErrorFeedback::Impl::abandon() noexcept {
  for (const Run& run : runs) {
    clear(run.entry->residuals);
    clear(run.entry->velocities);
  }
}

}  // namespace gradwire
