#include "collective/all_reduce.h"

#include <algorithm>
#include <limits>
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

Error argument_error(ErrorCode code, std::string field, std::string message) {
  Error error;
  error.code = code;
  error.field = std::move(field);
  error.message = std::move(message);
  return error;
}

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
    Error error = argument_error(ErrorCode::kTruncated, "encoded_length",
                                 "the header says more bytes than a slot holds");
    error.mine = std::to_string(slot.size());
    error.theirs = std::to_string(length);
    return error;
  }
  return slot.first(static_cast<std::size_t>(length));
}

}  // namespace

AllReduce::AllReduce(Communicator::Impl& impl, TensorView data, std::span<const PartLayout> parts,
                     const CollectiveOptions& options, std::uint64_t sequence,
                     CollectiveStats* stats)
    : impl_(impl),
      data_(data),
      whole_{data.count, 0, 0},
      parts_(parts.empty() ? std::span(&whole_, 1) : parts),
      options_(options),
      stats_(*stats),
      deadline_(Clock::now() + options.deadline),
      rank_(impl.rank()),
      world_(impl.world()),
      value_bytes_(dtype_size(data.dtype)) {
  place_.op = Op::kAllReduce;
  place_.dtype = value_bytes_ != 0 ? data.dtype : DType::kFloat32;
  place_.schedule = Schedule::kDirect;
  place_.block_values = CodecSpec{}.block_values;
  place_.world = static_cast<std::uint32_t>(world_);
  place_.sender = static_cast<std::uint32_t>(rank_);
  place_.segment_count = 1;
  place_.group_id = impl.transport->group_id();
  place_.step = options.step;
  place_.sequence = sequence;
}

Status AllReduce::prepare() {
  GRADWIRE_RETURN_IF_ERROR(check_arguments());
  GRADWIRE_RETURN_IF_ERROR(make_place());
  const std::uint64_t most = impl_.options.segment_bytes / value_bytes_;
  impl_.schedule.build(parts_, world_, most - most % kBorderValues, Communicator::kMaxSegmentParts);
  agreement_ = make_agreement(parts_, impl_.options.segment_bytes);
  agreement_text_ = write_agreement(agreement_);
  allocate();
  return {};
}

Status AllReduce::check_arguments() {
  if (!is_compressible(data_.dtype)) {
    return argument_error(ErrorCode::kUnsupportedDType, "dtype",
                          "all_reduce takes float32, float64, float16 and bfloat16, not " +
                              std::string(dtype_name(data_.dtype)));
  }
  if (data_.count > std::numeric_limits<std::size_t>::max() / value_bytes_ ||
      (data_.data == nullptr && data_.count > 0)) {
    return argument_error(ErrorCode::kInvalidArgument, "data",
                          "there are no " + std::to_string(data_.count) + " values in memory");
  }
  if (options_.reduction != Reduction::kSum && options_.reduction != Reduction::kAvg) {
    return argument_error(ErrorCode::kInvalidArgument, "reduction", "must be sum or avg");
  }
  std::uint64_t left = data_.count;
  for (const PartLayout& part : parts_) {
    if (part.values > left) left = std::numeric_limits<std::uint64_t>::max();
    if (left == std::numeric_limits<std::uint64_t>::max()) break;
    left -= part.values;
  }
  if (left != 0) {
    return argument_error(
        ErrorCode::kInvalidArgument, "parts",
        "the parts do not add up to the " + std::to_string(data_.count) + " values of the tensor");
  }
  const std::uint32_t segment_bytes = impl_.options.segment_bytes;
  if (segment_bytes < kMinSegmentBytes || segment_bytes > kMaxSegmentBytes) {
    return argument_error(ErrorCode::kInvalidArgument, "segment_bytes",
                          "is " + std::to_string(segment_bytes) + ", must be from " +
                              std::to_string(kMinSegmentBytes) + " to " +
                              std::to_string(kMaxSegmentBytes));
  }
  const std::size_t slot = Communicator::slot_bytes(impl_.options);
  if (world_ > 1 && impl_.transport->slot_bytes() < slot) {
    return argument_error(ErrorCode::kInvalidArgument, "slot_bytes",
                          "the transport has slots of " +
                              std::to_string(impl_.transport->slot_bytes()) +
                              " bytes, needed are " + std::to_string(slot));
  }
  return check_dtype(options_.codec, data_.dtype);
}

// Encodes nothing, which checks the codec's parameters before the first frame is sent and gives
// the fields that all frames of this collective have in common.
Status AllReduce::make_place() {
  const Part part{{data_.data, 0, data_.dtype}, 0, 0};
  EncodeOptions encode_options;
  FrameContext& context = encode_options.context;
  context.op = Op::kAllReduce;
  context.reduction = options_.reduction;
  context.schedule = Schedule::kDirect;
  context.world = place_.world;
  context.sender = place_.sender;
  context.group_id = place_.group_id;
  context.step = place_.step;
  context.sequence = place_.sequence;
  std::vector<std::byte> frame(max_encoded_size(options_.codec, data_.dtype, 0, 1));
  GRADWIRE_ASSIGN_OR_RETURN(
      const std::size_t length,
      encode(options_.codec, std::span(&part, 1), encode_options, frame, impl_.workspace));
  GRADWIRE_ASSIGN_OR_RETURN(const FrameView view, FrameView::open(std::span(frame).first(length)));
  place_ = view.header();
  return {};
}

void AllReduce::allocate() {
  std::uint64_t most = 0;
  std::size_t pieces = 0;
  for (int owner = 0; owner < world_; ++owner) {
    for (const Segment& segment : impl_.schedule.shard(owner)) {
      most = std::max(most, segment.values);
      pieces = std::max(pieces, segment.piece_count);
    }
  }
  const auto grow = [most](std::vector<std::byte>& buffer, std::size_t value_bytes) {
    if (buffer.size() < most * value_bytes) buffer.resize(most * value_bytes);
  };
  grow(impl_.accumulators, dtype_size(*accumulator_dtype(data_.dtype)));
  grow(impl_.results, value_bytes_);
  if (options_.measure_error) grow(impl_.decoded, value_bytes_);
  impl_.parts.reserve(pieces);
  impl_.views.reserve(pieces);
  impl_.arena.reset();
  progress_.resize(static_cast<std::size_t>(world_));
  const std::size_t own = impl_.schedule.shard(rank_).size();
  std::vector<std::uint64_t> frames;
  for (int peer = 0; peer < world_; ++peer) {
    frames.push_back(own + impl_.schedule.shard(peer).size());
  }
  impl_.exchange.begin(frames, deadline_);
}

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
    GRADWIRE_ASSIGN_OR_RETURN(
        const std::span<const std::byte> frame,
        encode_segment(Phase::kContribution, peer, index, values_at(segment)));
    GRADWIRE_RETURN_IF_ERROR(send(peer, frame, segment.values));
    if (options_.measure_error) GRADWIRE_RETURN_IF_ERROR(measure(frame, segment));
  }
  return {};
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

// How far the values that a contribution carries are from those of this rank.
Status AllReduce::measure(std::span<const std::byte> frame, const Segment& segment) {
  GRADWIRE_RETURN_IF_ERROR(decode_to(frame, segment, impl_.decoded.data()));
  ErrorSums sums;
  add_error(data_.dtype, values_at(segment), impl_.decoded.data(), segment.values, &sums);
  stats_.error_squares += sums.error_squares;
  stats_.value_squares += sums.value_squares;
  return {};
}

// ---- reducing the own shard ----

Status AllReduce::reduce_segment(std::uint32_t index) {
  const Segment& segment = impl_.schedule.shard(rank_)[index];
  clear_accumulators(data_.dtype, impl_.accumulators.data(), segment.values);
  for (int rank = 0; rank < world_; ++rank) {
    if (rank == rank_) {
      const Stopwatch stopwatch(stats_.decode_seconds);
      accumulate(data_.dtype, values_at(segment), static_cast<std::size_t>(segment.values),
                 impl_.accumulators.data());
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
