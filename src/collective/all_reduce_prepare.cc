// What an all_reduce does before it sends anything: arguments, plan, buffers.
#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "codec/accumulate.h"
#include "collective/all_reduce.h"
#include "core/status_macros.h"

namespace gradwire::internal {
namespace {

// Longer deadlines count as this one and negative ones as none, so that no time point overflows.
constexpr std::chrono::hours kLongestDeadline{24 * 365};

Error argument_error(ErrorCode code, std::string field, std::string message) {
  Error error;
  error.code = code;
  error.field = std::move(field);
  error.message = std::move(message);
  return error;
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
      deadline_(Clock::now() + std::clamp<std::chrono::milliseconds>(options.deadline,
                                                                     std::chrono::milliseconds(0),
                                                                     kLongestDeadline)),
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
  agreement_ = make_agreement(parts_, impl_.options.segment_bytes, options_.error_feedback);
  agreement_text_ = write_agreement(agreement_);
  return allocate();
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
  if (options_.error_feedback != nullptr) {
    GRADWIRE_RETURN_IF_ERROR(ErrorFeedback::check(options_.error_feedback->settings()));
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

Status AllReduce::allocate() {
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
  if (options_.measure_error || options_.error_feedback != nullptr) {
    grow(impl_.decoded, value_bytes_);
  }
  if (options_.error_feedback != nullptr) {
    ErrorFeedback::Impl& feedback = options_.error_feedback->impl();
    GRADWIRE_RETURN_IF_ERROR(
        feedback.begin(options_.error_feedback->settings(), parts_, data_.dtype, most));
    feedback_ = &feedback;
  }
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
  return {};
}

}  // namespace gradwire::internal
