#include "collective/all_reduce.h"

#include <string>
#include <utility>

#include "codec/accumulate.h"
#include "collective/error_frame.h"
#include "collective/reduce.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"
#include "gradwire/version.h"

namespace gradwire::internal {
namespace {

// Rounds between sending contributions and waiting for those of the same number.
constexpr std::uint32_t kLag = 2;

// Adds the time of its scope to `seconds`.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const Clock::time_point start_;
};

// An error in the bytes of a frame: says whose frame it was.
Error frame_error(Error error, int peer) {
  if (error.code == ErrorCode::kUnsupportedVersion) {
    return mismatch_error("version", std::to_string(kFormatVersion), error.theirs, peer);
  }
  error.rank = peer;
  error.message = "frame from rank " + std::to_string(peer) + ": " + error.message;
  return error;
}

// The frame in a slot: its header says how long it is.
Result<std::span<const std::byte>> cut_frame(std::span<const std::byte> slot) {
  GRADWIRE_ASSIGN_OR_RETURN(const std::uint64_t length, read_frame_length(slot));
  if (length > slot.size()) {
    Error error;
    error.code = ErrorCode::kTruncated;
    error.message = "the header says more bytes than a slot holds";
    error.field = "encoded_length";
    error.mine = std::to_string(slot.size());
    error.theirs = std::to_string(length);
    return error;
  }
  return slot.first(static_cast<std::size_t>(length));
}

}  // namespace

Status AllReduce::run() {
  const FpEnvironment fp_environment;
  GRADWIRE_RETURN_IF_ERROR(impl_.exchange.post_all());
  const std::uint32_t most = impl_.schedule.max_segment_count();
  const std::size_t own = impl_.schedule.shard(rank_).size();
  for (std::uint32_t round = 0; round < most + kLag; ++round) {
    if (round < most) GRADWIRE_RETURN_IF_ERROR(send_contributions(round));
    if (round >= kLag && round - kLag < own) {
      GRADWIRE_RETURN_IF_ERROR(reduce_segment(round - kLag));
    }
  }
  for (int peer = 0; peer < world_; ++peer) {
    while (peer != rank_ && !impl_.exchange.done(peer)) GRADWIRE_RETURN_IF_ERROR(take(peer));
  }
  GRADWIRE_RETURN_IF_ERROR(impl_.exchange.finish());
  stats_.encoded_bytes_out += impl_.exchange.bytes_out();
  stats_.wait_seconds += impl_.exchange.wait_seconds();
  if (feedback_ != nullptr) feedback_->finish(options_.error_feedback->settings(), options_.step);
  return {};
}

std::byte* AllReduce::values_at(const Segment& segment) const noexcept {
  return static_cast<std::byte*>(data_.data) + segment.first_value * value_bytes_;
}

// ---- sending ----

// Segment `index` of every peer's shard, starting behind this rank so that not all ranks send to
// the same peer at once.
Status AllReduce::send_contributions(std::uint32_t index) {
  for (int offset = 1; offset < world_; ++offset) {
    const int peer = (rank_ + offset) % world_;
    const std::span<const Segment> shard = impl_.schedule.shard(peer);
    if (index >= shard.size()) continue;
    const Segment& segment = shard[index];
    const std::byte* sent = compensate(segment);
    GRADWIRE_ASSIGN_OR_RETURN(const std::span<const std::byte> frame,
                              encode_segment(Phase::kContribution, peer, index, sent));
    GRADWIRE_RETURN_IF_ERROR(send(peer, frame, segment.values));
    if (options_.measure_error || feedback_ != nullptr) {
      GRADWIRE_RETURN_IF_ERROR(compare(frame, segment, sent));
    }
  }
  return {};
}

// The values of a segment as this rank contributes them.
const std::byte* AllReduce::compensate(const Segment& segment) {
  const std::byte* values = values_at(segment);
  if (feedback_ == nullptr) return values;
  const Stopwatch stopwatch(stats_.encode_seconds);
  return feedback_->compensate(impl_.schedule.pieces(segment), values);
}

Result<std::span<const std::byte>> AllReduce::encode_segment(Phase phase, int owner,
                                                             std::uint32_t index,
                                                             const std::byte* values) {
  const Stopwatch stopwatch(stats_.encode_seconds);
  const std::span<const Segment> shard = impl_.schedule.shard(owner);
  const Segment& segment = shard[index];
  impl_.parts.clear();
  for (const SegmentPiece& piece : impl_.schedule.pieces(segment)) {
    const std::byte* at = values + (piece.first_value - segment.first_value) * value_bytes_;
    impl_.parts.push_back({{at, piece.values, data_.dtype}, piece.tensor, piece.first_index});
  }
  EncodeOptions encode_options;
  encode_options.context = {Op::kAllReduce,
                            phase,
                            options_.reduction,
                            Schedule::kDirect,
                            place_.world,
                            place_.sender,
                            place_.group_id,
                            options_.step,
                            place_.sequence,
                            index,
                            static_cast<std::uint32_t>(shard.size()),
                            segment.first_value};
  if (phase == Phase::kContribution && index == 0) {
    encode_options.metadata = {agreement_text_.data(), agreement_text_.size()};
  }
  const std::uint64_t most = max_encoded_size(options_.codec, data_.dtype, segment.values,
                                              impl_.parts.size(), encode_options.metadata.size());
  const std::span<std::byte> room = impl_.arena.reserve(static_cast<std::size_t>(most));
  EncodeStats encoded;
  GRADWIRE_ASSIGN_OR_RETURN(
      const std::size_t length,
      encode(options_.codec, impl_.parts, encode_options, room, impl_.workspace, &encoded));
  impl_.arena.keep(length);
  stats_.stored_blocks += encoded.blocks_stored;
  stats_.coded_blocks += encoded.blocks_coded;
  stats_.fixed_blocks += encoded.blocks_fixed;
  stats_.outliers += encoded.outliers;
  return std::span<const std::byte>(room.first(length));
}

Status AllReduce::send(int peer, std::span<const std::byte> frame, std::uint64_t values) {
  stats_.raw_bytes_out += values * value_bytes_;
  return impl_.exchange.send(peer, frame);
}

// What a contribution has lost of the values that were sent: for the statistics, and to be kept.
Status AllReduce::compare(std::span<const std::byte> frame, const Segment& segment,
                          const std::byte* sent) {
  const std::byte* decoded = impl_.decoded.data();
  GRADWIRE_RETURN_IF_ERROR(decode_to(frame, segment, impl_.decoded.data()));
  if (options_.measure_error) {
    ErrorSums sums;
    add_error(data_.dtype, sent, decoded, segment.values, &sums);
    stats_.error_squares += sums.error_squares;
    stats_.value_squares += sums.value_squares;
  }
  if (feedback_ != nullptr) {
    const Stopwatch stopwatch(stats_.decode_seconds);
    feedback_->settle(impl_.schedule.pieces(segment), values_at(segment), decoded);
  }
  return {};
}

void AllReduce::abandon() noexcept {
  if (feedback_ != nullptr) feedback_->abandon();
}

// ---- reducing the own shard ----

Status AllReduce::reduce_segment(std::uint32_t index) {
  const Segment& segment = impl_.schedule.shard(rank_)[index];
  clear_accumulators(data_.dtype, impl_.accumulators.data(), segment.values);
  for (int rank = 0; rank < world_; ++rank) {
    if (rank == rank_) {
      const std::byte* values = compensate(segment);
      const Stopwatch stopwatch(stats_.decode_seconds);
      accumulate(data_.dtype, values, static_cast<std::size_t>(segment.values),
                 impl_.accumulators.data());
      if (feedback_ != nullptr) {
        feedback_->settle_own(impl_.schedule.pieces(segment), values_at(segment));
      }
      continue;
    }
    const Progress& progress = progress_[static_cast<std::size_t>(rank)];
    while (progress.contributions <= index) GRADWIRE_RETURN_IF_ERROR(take(rank));
  }
  return finish_segment(index);
}

// The sum becomes the result, here by way of the encoded frame as everywhere else.
Status AllReduce::finish_segment(std::uint32_t index) {
  const Segment& segment = impl_.schedule.shard(rank_)[index];
  {
    const Stopwatch stopwatch(stats_.decode_seconds);
    stats_.nonfinite +=
        finish_reduction(data_.dtype, options_.reduction == Reduction::kAvg, world_,
                         impl_.accumulators.data(), impl_.results.data(), segment.values);
  }
  GRADWIRE_ASSIGN_OR_RETURN(const std::span<const std::byte> frame,
                            encode_segment(Phase::kResult, rank_, index, impl_.results.data()));
  for (int offset = 1; offset < world_; ++offset) {
    GRADWIRE_RETURN_IF_ERROR(send((rank_ + offset) % world_, frame, segment.values));
  }
  return decode_to(frame, segment, values_at(segment));
}

std::span<const TensorView> AllReduce::make_views(const Segment& segment, std::byte* values,
                                                  DType dtype) {
  impl_.views.clear();
  for (const SegmentPiece& piece : impl_.schedule.pieces(segment)) {
    std::byte* at = values + (piece.first_value - segment.first_value) * dtype_size(dtype);
    impl_.views.push_back({at, piece.values, dtype});
  }
  return impl_.views;
}

Status AllReduce::decode_to(std::span<const std::byte> frame, const Segment& segment,
                            std::byte* values) {
  const Stopwatch stopwatch(stats_.decode_seconds);
  return decode(frame, make_views(segment, values, data_.dtype), impl_.workspace);
}

Status AllReduce::decode_add_to(std::span<const std::byte> frame, const Segment& segment) {
  const Stopwatch stopwatch(stats_.decode_seconds);
  const DType dtype = *accumulator_dtype(data_.dtype);
  return decode_add(frame, make_views(segment, impl_.accumulators.data(), dtype), impl_.workspace);
}

// ---- receiving ----

// Takes the next frame of `peer`: a contribution goes to the accumulators, a result to the tensor.
Status AllReduce::take(int peer) {
  GRADWIRE_ASSIGN_OR_RETURN(const std::span<const std::byte> slot, impl_.exchange.next(peer));
  const Result<std::span<const std::byte>> bytes = cut_frame(slot);
  if (!bytes.ok()) return frame_error(bytes.error(), peer);
  const Result<FrameView> frame = FrameView::open(*bytes);
  if (!frame.ok()) return frame_error(frame.error(), peer);
  stats_.encoded_bytes_in += bytes->size();
  if (frame->header().op == Op::kError) {
    GRADWIRE_RETURN_IF_ERROR(take_error(peer, *frame));
  } else {
    GRADWIRE_RETURN_IF_ERROR(use(peer, *frame, *bytes));
  }
  return impl_.exchange.release(peer);
}

// A report about an earlier call that failed here as well is old news; all others end this call.
Status AllReduce::take_error(int peer, const FrameView& frame) {
  const std::uint64_t sequence = frame.header().sequence;
  if (sequence >= impl_.first_failure && sequence < place_.sequence) {
    impl_.exchange.expect_one_more(peer);
    return {};
  }
  impl_.exchange.end(peer);
  Error error = translate_error(parse_error_metadata(frame.metadata()), peer, rank_);
  error.sequence = sequence;
  return error;
}

Status AllReduce::use(int peer, const FrameView& frame, std::span<const std::byte> bytes) {
  const std::uint64_t sequence = frame.header().sequence;
  if (sequence >= impl_.first_failure && sequence < place_.sequence) {
    // This rank failed in that call before it sent anything, so the peer has given up the group.
    Error error;
    error.code = ErrorCode::kPeerLost;
    error.message = "rank " + std::to_string(peer) + " left the group when collective " +
                    std::to_string(sequence) + " failed on this rank";
    error.rank = peer;
    return error;
  }
  const ExpectedFrame expected = expect(peer, frame.header().phase);
  if (auto error = check_frame(expected, frame, peer)) return std::move(*error);
  Progress& progress = progress_[static_cast<std::size_t>(peer)];
  const bool contribution = expected.header.phase == Phase::kContribution;
  const Segment& segment =
      impl_.schedule.shard(contribution ? rank_ : peer)[expected.header.segment];
  ++(contribution ? progress.contributions : progress.results);
  const Status decoded =
      contribution ? decode_add_to(bytes, segment) : decode_to(bytes, segment, values_at(segment));
  if (!decoded.ok()) return frame_error(decoded.error(), peer);
  return {};
}

// The next contribution or result of `peer`, as `phase` says, where both may come.
ExpectedFrame AllReduce::expect(int peer, Phase phase) const {
  const Progress& progress = progress_[static_cast<std::size_t>(peer)];
  const std::span<const Segment> mine = impl_.schedule.shard(rank_);
  const std::span<const Segment> theirs = impl_.schedule.shard(peer);
  // The first frame of a stream is a contribution: only then is the peer known to agree.
  const bool contribution = progress.contributions == 0 ||
                            (progress.contributions < mine.size() &&
                             (phase == Phase::kContribution || progress.results == theirs.size()));
  const std::span<const Segment> shard = contribution ? mine : theirs;
  const std::uint32_t index = contribution ? progress.contributions : progress.results;
  ExpectedFrame expected;
  if (contribution && index == 0) expected.agreement = &agreement_;
  expected.pieces = impl_.schedule.pieces(shard[index]);
  FrameHeader& header = expected.header;
  header = place_;
  header.phase = contribution ? Phase::kContribution : Phase::kResult;
  header.sender = static_cast<std::uint32_t>(peer);
  header.segment = index;
  header.segment_count = static_cast<std::uint32_t>(shard.size());
  header.part_count = static_cast<std::uint32_t>(expected.pieces.size());
  header.value_count = shard[index].values;
  header.first_value = shard[index].first_value;
  header.metadata_bytes = expected.agreement != nullptr ? kAgreementBytes : 0;
  return expected;
}

}  // namespace gradwire::internal
