#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "collective/agreement.h"
#include "collective/all_reduce.h"
#include "collective/communicator_impl.h"
#include "collective/error_frame.h"
#include "frame/block_index.h"
#include "frame/header.h"
#include "gradwire/collective.h"

namespace gradwire {
namespace {

// How long a failed rank exchanges last frames with the others. Ranks that fail together need far
// less; for one that never comes it must be short, as every rank raises within two seconds.
constexpr std::chrono::milliseconds kDrainTime{500};

// Its text must fit std::string's own buffer, as nothing can be allocated now.
Error out_of_memory() noexcept {
  Error error;
  error.code = ErrorCode::kOutOfMemory;
  error.message = "out of memory";
  return error;
}

Error retired_error(std::uint64_t sequence) {
  Error error;
  error.code = ErrorCode::kRetired;
  error.message = "this group of ranks has failed before and is not used again";
  error.sequence = sequence;
  return error;
}

// The error of `function`, with memory that ran out as one of them.
template <typename Function>
Status run_guarded(Function&& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// Sends `error` to all peers, as far as that still works. False if a peer could not be told.
bool announce(Communicator::Impl& impl, const internal::FrameHeader& place, const Error& error) {
  bool told = true;
  const Status sent = run_guarded([&]() -> Status {
    impl.error_frames.push_back(internal::write_error_frame(place, error));
    for (int peer = 0; peer < impl.world(); ++peer) {
      if (peer == impl.rank()) continue;
      // A peer that cannot be told must not keep the others from being told.
      told = impl.exchange.send(peer, impl.error_frames.back()).ok() && told;
    }
    return {};
  });
  // The error that is being reported counts, not what happened on the way.
  return sent.ok() && told;
}

bool is_error_frame(std::span<const std::byte> slot) {
  return slot.size() >= internal::kHeaderBytes &&
         internal::read_header(slot.first<internal::kHeaderBytes>()).op == Op::kError;
}

void retire(Communicator::Impl& impl) {
  impl.retired = true;
  const Status drained = run_guarded([&]() -> Status {
    impl.exchange.drain(is_error_frame, Clock::now() + kDrainTime);
    return {};
  });
  static_cast<void>(drained.ok());  // as above
  impl.transport->retire();
}

}  // namespace

void CollectiveStats::add(const CollectiveStats& other) {
  calls += other.calls;
  values += other.values;
  raw_bytes_out += other.raw_bytes_out;
  encoded_bytes_out += other.encoded_bytes_out;
  encoded_bytes_in += other.encoded_bytes_in;
  encode_seconds += other.encode_seconds;
  decode_seconds += other.decode_seconds;
  wait_seconds += other.wait_seconds;
  total_seconds += other.total_seconds;
  stored_blocks += other.stored_blocks;
  coded_blocks += other.coded_blocks;
  fixed_blocks += other.fixed_blocks;
  outliers += other.outliers;
  nonfinite += other.nonfinite;
  error_squares += other.error_squares;
  value_squares += other.value_squares;
}

std::size_t Communicator::slot_bytes(const Options& options) {
  // The smallest values have 2 bytes, the smallest blocks 4096 values.
  const std::size_t blocks = options.segment_bytes / 2 / 4096 + 1;
  const std::size_t frame = internal::kHeaderBytes + internal::kPartEntryBytes * kMaxSegmentParts +
                            internal::kBlockEntryBytes * blocks + internal::kAgreementBytes +
                            options.segment_bytes;
  static_assert(internal::kMaxErrorFrameBytes <=
                internal::kHeaderBytes + internal::kPartEntryBytes * kMaxSegmentParts);
  return frame;
}

Communicator::Communicator(std::unique_ptr<Transport> transport, const Options& options)
    : impl_(std::make_unique<Impl>(std::move(transport), options)) {
  impl_->retired = impl_->transport == nullptr;
}

Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;

int Communicator::rank() const noexcept { return impl_->rank(); }
int Communicator::world() const noexcept { return impl_->world(); }
bool Communicator::retired() const noexcept { return impl_->retired; }
std::uint64_t Communicator::next_sequence() const noexcept { return impl_->sequence; }

Status Communicator::all_reduce(TensorView data, std::span<const PartLayout> parts,
                                const CollectiveOptions& options, CollectiveStats* stats) {
  Impl& impl = *impl_;
  if (impl.retired) return retired_error(impl.sequence);
  const Clock::time_point start = Clock::now();
  const std::uint64_t sequence = impl.sequence++;
  CollectiveStats call;
  internal::AllReduce operation(impl, data, parts, options, sequence, &call);
  const Status prepared = run_guarded([&] { return operation.prepare(); });
  const Status status = prepared.ok() ? run_guarded([&] { return operation.run(); }) : prepared;
  if (!status.ok()) {
    Error error = status.error();
    if (error.sequence == 0) error.sequence = sequence;
    const bool told = announce(impl, operation.place(), error);
    if (prepared.ok()) {
      operation.abandon();
      retire(impl);
    } else if (!told) {
      // Who has not been told would wait for its deadline: it shall see a lost rank. Nothing was
      // posted, so there is nothing to drain.
      impl.retired = true;
      impl.transport->retire();
    }
    return error;
  }
  impl.first_failure = impl.sequence;
  impl.error_frames.clear();
  call.calls = 1;
  call.values = data.count;
  call.total_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (stats != nullptr) stats->add(call);
  return {};
}

}  // namespace gradwire
