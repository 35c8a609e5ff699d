#include "channel.h"

#include <new>
#include <utility>

namespace gradwire::internal {
namespace {

Error retired(const char* message) {
  Error error;
  error.code = ErrorCode::kRetired;
  error.message = message;
  return error;
}

}  // namespace

Channel::Channel(Connect connect, Numbering numbering)
    : connect_(std::move(connect)), numbering_(numbering) {}

Channel::~Channel() {
  close();
  const std::lock_guard call(call_mutex_);
  drop_communicator();
}

void Channel::drop_communicator() {
  {
    const std::lock_guard state(state_mutex_);
    transport_ = nullptr;
    next_sequence_ = 0;
  }
  communicator_.reset();
  failed_ = false;
}

Status Channel::ensure_connected(IfRetired if_retired) {
  {
    const std::lock_guard state(state_mutex_);
    if (closed_) return retired("this group of ranks was closed");
  }
  // Also after an error of this rank alone, as the others have given up the group because of it.
  if (communicator_.has_value() && !communicator_->retired() && !failed_) return {};
  if (if_retired == IfRetired::kFail) {
    return retired("an earlier call of this step failed; the next step makes a new group");
  }
  // The old one stays until the new one is there: the others come for that only when they have
  // heard by the old one why it failed.
  const std::optional<Communicator> old = std::move(communicator_);
  drop_communicator();
  Communicator::Options options;
  if (numbering_ == Numbering::kContinues) options.first_sequence = calls_;
  Result<std::unique_ptr<Transport>> transport = connect_(Communicator::slot_bytes(options));
  if (!transport.ok()) return transport.error();
  Transport* const raw = transport->get();
  communicator_.emplace(std::move(*transport), options);
  const std::lock_guard state(state_mutex_);
  transport_ = raw;
  if (closed_) raw->retire();  // close() came while the group was being made
  return {};
}

Status Channel::all_reduce(TensorView data, std::span<const PartLayout> parts,
                           const CollectiveOptions& options, IfRetired if_retired,
                           CollectiveStats* stats) {
  const std::lock_guard call(call_mutex_);
  ++calls_;
  try {
    if (Status status = ensure_connected(if_retired); !status.ok()) return status;
    Status status = communicator_->all_reduce(data, parts, options, stats);
    failed_ = !status.ok();
    const std::lock_guard state(state_mutex_);
    next_sequence_ = communicator_->next_sequence();
    return status;
  } catch (const std::bad_alloc&) {
    drop_communicator();  // a group that is half made or half way through a call is of no use
    Error error;
    error.code = ErrorCode::kOutOfMemory;
    error.message = "out of memory while a group of ranks was made";
    return error;
  }
}

void Channel::close() noexcept {
  const std::lock_guard state(state_mutex_);
  closed_ = true;
  if (transport_ != nullptr) transport_->retire();
}

std::uint64_t Channel::next_sequence() const {
  const std::lock_guard state(state_mutex_);
  return next_sequence_;
}

}  // namespace gradwire::internal
