#include "collective/exchange.h"

#include <utility>

#include "core/status_macros.h"

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
    GRADWIRE_ASSIGN_OR_RETURN(const Request request,
                              transport_->receive(peer, slot(stream, stream.posted)));
    stream.receives[stream.posted % kWindow] = request;
    ++stream.posted;
  }
  return {};
}

Status Exchange::wait(Request request, Clock::time_point deadline) {
  const Clock::time_point start = Clock::now();
  Status status = transport_->wait(request, deadline);
  wait_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  return status;
}

Result<std::span<const std::byte>> Exchange::next(int peer) {
  GRADWIRE_RETURN_IF_ERROR(post(peer));
  Stream& stream = streams_[static_cast<std::size_t>(peer)];
  GRADWIRE_RETURN_IF_ERROR(wait(stream.receives[stream.consumed % kWindow], deadline_));
  return std::span<const std::byte>(slot(stream, stream.consumed));
}

Status Exchange::release(int peer) {
  ++streams_[static_cast<std::size_t>(peer)].consumed;
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
      GRADWIRE_RETURN_IF_ERROR(wait(stream.sends[stream.waited++], deadline_));
    }
    stream.sends.clear();
    stream.waited = 0;
  }
  return {};
}

void Exchange::drain(Clock::time_point limit) {
  for (Stream& stream : streams_) {
    while (stream.waited < stream.sends.size()) {
      if (!transport_->wait(stream.sends[stream.waited++], limit).ok()) break;
    }
  }
}

}  // namespace gradwire::internal
