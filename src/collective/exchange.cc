#include "collective/exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/status_macros.h"
#include "frame/header.h"

namespace gradwire::internal {

void Exchange::begin(std::span<const std::uint64_t> frames, Clock::time_point deadline) {
  for (std::size_t peer = 0; peer < streams_.size(); ++peer) {
    Stream& stream = streams_[peer];
    if (!stream.slots && static_cast<int>(peer) != transport_->rank()) {
      stream.slots =
          std::make_unique_for_overwrite<std::byte[]>(kWindow * transport_->slot_bytes());
    }
    stream.expected = frames[peer];
    stream.posted = 0;
    stream.consumed = 0;
    stream.taken = false;
    stream.ended = false;
  }
  deadline_ = deadline;
  bytes_out_ = 0;
  wait_seconds_ = 0;
}

Status Exchange::post_all() {
  for (int peer = 0; peer < transport_->world(); ++peer) {
    if (peer != transport_->rank()) GRADWIRE_RETURN_IF_ERROR(post(peer));
  }
  return {};
}

std::span<std::byte> Exchange::slot(Stream& stream, std::uint64_t number) const {
  const std::size_t size = transport_->slot_bytes();
  return {stream.slots.get() + number % kWindow * size, size};
}

Status Exchange::post(int peer) {
  Stream& stream = streams_[static_cast<std::size_t>(peer)];
  while (stream.posted < stream.expected && stream.posted < stream.consumed + kWindow) {
    const std::span<std::byte> room = slot(stream, stream.posted);
    // The header of an old message must not complete one that is cut short.
    std::memset(room.data(), 0, std::min(room.size(), kHeaderBytes));
    GRADWIRE_ASSIGN_OR_RETURN(const Request request, transport_->receive(peer, room));
    stream.receives[stream.posted % kWindow] = request;
    ++stream.posted;
  }
  return {};
}

Status Exchange::wait(Request request) {
  const Clock::time_point start = Clock::now();
  Status status = transport_->wait(request, deadline_);
  wait_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  return status;
}

Result<std::span<const std::byte>> Exchange::next(int peer) {
  GRADWIRE_RETURN_IF_ERROR(post(peer));
  Stream& stream = streams_[static_cast<std::size_t>(peer)];
  if (Status status = wait(stream.receives[stream.consumed % kWindow]); !status.ok()) {
    stream.ended = true;
    return status.error();
  }
  stream.taken = true;
  return std::span<const std::byte>(slot(stream, stream.consumed));
}

Status Exchange::release(int peer) {
  Stream& stream = streams_[static_cast<std::size_t>(peer)];
  ++stream.consumed;
  stream.taken = false;
  return post(peer);
}

Status Exchange::send(int peer, std::span<const std::byte> message) {
  Stream& stream = streams_[static_cast<std::size_t>(peer)];
  Request& entry = stream.sends.emplace_back();  // room first: a made request must not be lost
  Result<Request> request = transport_->send(peer, message);
  if (!request.ok()) {
    stream.sends.pop_back();
    return request.error();
  }
  entry = *request;
  bytes_out_ += message.size();
  return {};
}

Status Exchange::finish() {
  for (Stream& stream : streams_) {
    while (stream.waited < stream.sends.size()) {
      GRADWIRE_RETURN_IF_ERROR(wait(stream.sends[stream.waited++]));
    }
    stream.sends.clear();
    stream.waited = 0;
  }
  return {};
}

void Exchange::drain(bool (*is_last)(std::span<const std::byte> slot), Clock::time_point limit) {
  deadline_ = limit;
  for (int peer = 0; peer < transport_->world(); ++peer) {
    Stream& stream = streams_[static_cast<std::size_t>(peer)];
    if (peer == transport_->rank()) continue;
    stream.expected = std::numeric_limits<std::uint64_t>::max();
    bool more = !stream.ended && (!stream.taken || release(peer).ok());
    while (more) {
      const Result<std::span<const std::byte>> slot_of_last = next(peer);
      more = slot_of_last.ok() && !is_last(*slot_of_last) && release(peer).ok();
    }
  }
  for (Stream& stream : streams_) {
    while (stream.waited < stream.sends.size()) {
      if (!wait(stream.sends[stream.waited++]).ok()) break;
    }
  }
}

}  // namespace gradwire::internal
