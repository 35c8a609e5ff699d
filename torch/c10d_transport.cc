#include "c10d_transport.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

// FNV-1a over the group's name, which all ranks share (it is the prefix under which they met in
// the store) and no two living groups of a process have in common.
std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The first line of what c10d says; c10::Error appends a stack trace.
std::string first_line(const char* text) {
  std::string line(text == nullptr ? "" : text);
  return line.substr(0, line.find('\n'));
}

}  // namespace

C10dTransport::C10dTransport(c10::intrusive_ptr<c10d::ProcessGroup> group, std::size_t slot_bytes)
    : group_(std::move(group)),
      rank_(group_->getRank()),
      world_(group_->getSize()),
      slot_bytes_(slot_bytes),
      group_id_(hash_name(group_->getGroupName())) {}

C10dTransport::~C10dTransport() { retire(); }

Error C10dTransport::retired_error() const {
  Error error;
  error.code = ErrorCode::kRetired;
  error.message = "this group of ranks has failed or was closed and is not used again";
  return error;
}

Status C10dTransport::check_post(int peer, std::size_t bytes, bool size_fits) const {
  if (retired_) return retired_error();
  Error error;
  error.code = ErrorCode::kInvalidArgument;
  if (peer < 0 || peer >= world_ || peer == rank_) {
    error.field = "peer";
    error.mine = std::to_string(peer);
    error.message = "peer " + error.mine + " is not another rank of a group of " +
                    std::to_string(world_) + " ranks";
    return error;
  }
  if (!size_fits) {
    error.field = "bytes";
    error.mine = std::to_string(bytes);
    error.message = "a message of " + error.mine + " bytes does not fit a slot of " +
                    std::to_string(slot_bytes_) + " bytes";
    return error;
  }
  return {};
}

Error C10dTransport::failure(const Pending& pending, const std::string& what,
                             bool after_deadline) const {
  Error error;
  error.code = after_deadline ? ErrorCode::kDeadlineExceeded : ErrorCode::kPeerLost;
  error.rank = pending.peer;
  const std::string action = pending.is_send ? "send to" : "receive from";
  const std::string peer = " rank " + std::to_string(pending.peer);
  error.message = after_deadline ? "no answer before the deadline: " + action + peer
                                 : "connection lost: " + action + peer + ": " + what;
  return error;
}

Result<Request> C10dTransport::send(int peer, std::span<const std::byte> message) {
  // c10d takes tensors of mutable bytes; a send only reads them.
  return post(Direction::kSend, peer, const_cast<std::byte*>(message.data()), message.size());
}

Result<Request> C10dTransport::receive(int peer, std::span<std::byte> slot) {
  return post(Direction::kReceive, peer, slot.data(), slot.size());
}

Result<Request> C10dTransport::post(Direction direction, int peer, void* data, std::size_t bytes) {
  const bool is_send = direction == Direction::kSend;
  const bool size_fits = is_send ? bytes >= 1 && bytes <= slot_bytes_ : bytes == slot_bytes_;
  {
    const std::lock_guard lock(mutex_);
    if (Status status = check_post(peer, bytes, size_fits); !status.ok()) return status.error();
  }
  Pending pending{nullptr, peer, is_send};
  std::string what;
  try {
    std::vector<at::Tensor> tensors{
        at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte))};
    pending.work = is_send ? group_->send(tensors, peer, kTag) : group_->recv(tensors, peer, kTag);
    const std::lock_guard lock(mutex_);
    const std::uint64_t request = next_request_++;
    pending_.emplace(request, pending);
    // A retire() between the check and here has not seen this Work.
    if (retired_) pending.work->abort();
    return Request{request};
  } catch (const std::exception& exception) {
    what = first_line(exception.what());
  } catch (...) {
    what = "unknown exception";
  }
  // Not the end of the whole group: the other ranks wait to be told.
  return failure(pending, what, false);
}

Status C10dTransport::wait(Request request, Clock::time_point deadline) {
  using std::chrono::milliseconds;
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (retired_) return retired_error();
    const auto found = pending_.find(static_cast<std::uint64_t>(request));
    if (found == pending_.end()) {
      Error error;
      error.code = ErrorCode::kInvalidArgument;
      error.field = "request";
      error.message = "no such request, or it was waited for already";
      return error;
    }
    pending = found->second;  // stays in the map, so that retire() can end the wait
  }
  std::string what;
  try {
    // Zero would mean the group's own timeout.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (pending.work->wait(std::max(left, milliseconds(1)))) {
      const std::lock_guard lock(mutex_);
      pending_.erase(static_cast<std::uint64_t>(request));
      return {};
    }
    return retired_error();  // wait() returns false after abort()
  } catch (const std::exception& exception) {
    what = first_line(exception.what());
  } catch (...) {
    what = "unknown exception";
  }
  const bool was_retired = [this] {
    const std::lock_guard lock(mutex_);
    return retired_;
  }();
  if (was_retired) return retired_error();
  return failure(pending, what, Clock::now() >= deadline);
}

void C10dTransport::retire() noexcept {
  std::unordered_map<std::uint64_t, Pending> abandoned;
  {
    const std::lock_guard lock(mutex_);
    retired_ = true;
    for (const auto& [request, pending] : pending_) {
      try {
        pending.work->abort();
      } catch (...) {
        // Nothing to abort: the Work has ended already.
      }
    }
    // Without its Work, Gloo no longer touches the memory of a request.
    abandoned.swap(pending_);
  }
}

}  // namespace gradwire
