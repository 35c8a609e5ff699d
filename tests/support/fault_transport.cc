#include "support/fault_transport.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace gradwire::testing {
namespace {

// Of dropped messages; no transport gives it to a request of its own.
constexpr Request kDropped{~std::uint64_t{0}};

}  // namespace

FaultTransport::FaultTransport(std::unique_ptr<Transport> inner, std::vector<Fault> faults)
    : inner_(std::move(inner)),
      faults_(std::move(faults)),
      sent_(static_cast<std::size_t>(inner_->world())) {}

const Fault* FaultTransport::fault_of(int peer, std::uint64_t number) const {
  for (const Fault& fault : faults_) {
    if (fault.peer == peer && fault.number == number) return &fault;
  }
  return nullptr;
}

Result<Request> FaultTransport::send(int peer, std::span<const std::byte> message) {
  const Fault* fault = fault_of(peer, sent_[static_cast<std::size_t>(peer)]++);
  if (fault == nullptr) return inner_->send(peer, message);
  switch (fault->kind) {
    case Fault::Kind::kDrop:
      return kDropped;
    case Fault::Kind::kTruncate:
      return inner_->send(peer, message.first(std::min(fault->amount, message.size())));
    case Fault::Kind::kDelay:
      std::this_thread::sleep_for(std::chrono::milliseconds(fault->amount));
      return inner_->send(peer, message);
    case Fault::Kind::kKill:
      inner_->retire();
      return inner_->send(peer, message);
    case Fault::Kind::kFlip:
    case Fault::Kind::kReplace:
      break;
  }
  std::vector<std::byte>& bytes = changed_.emplace_back(message.begin(), message.end());
  if (fault->kind == Fault::Kind::kFlip) {
    bytes[std::min(fault->amount, bytes.size() - 1)] ^= std::byte{1};
  } else {
    fault->edit(bytes);
  }
  return inner_->send(peer, bytes);
}

Status FaultTransport::wait(Request request, Clock::time_point deadline) {
  if (request == kDropped) return {};
  return inner_->wait(request, deadline);
}

}  // namespace gradwire::testing
