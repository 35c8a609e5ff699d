// A transport that does harm to what goes through it.
#ifndef GRADWIRE_TESTS_SUPPORT_FAULT_TRANSPORT_H_
#define GRADWIRE_TESTS_SUPPORT_FAULT_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "gradwire/transport.h"

namespace gradwire::testing {

// What happens to message `number` (from 0) to `peer`.
struct Fault {
  enum class Kind {
    kDrop,      // it never arrives
    kTruncate,  // only its first `amount` bytes arrive
    kFlip,      // bit 0 of byte `amount` is flipped
    kDelay,     // it leaves `amount` milliseconds later
    kKill,      // this rank is gone instead of sending it
    kReplace,   // `edit` changes the bytes
  };
  Kind kind = Kind::kDrop;
  int peer = 0;
  std::uint64_t number = 0;
  std::size_t amount = 0;
  std::function<void(std::vector<std::byte>&)> edit;
};

class FaultTransport final : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, std::vector<Fault> faults);

  int rank() const noexcept override { return inner_->rank(); }
  int world() const noexcept override { return inner_->world(); }
  std::size_t slot_bytes() const noexcept override { return inner_->slot_bytes(); }
  std::uint64_t group_id() const noexcept override { return inner_->group_id(); }
  Result<Request> send(int peer, std::span<const std::byte> message) override;
  Result<Request> receive(int peer, std::span<std::byte> slot) override {
    return inner_->receive(peer, slot);
  }
  Status wait(Request request, Clock::time_point deadline) override;
  void retire() noexcept override { inner_->retire(); }

 private:
  const Fault* fault_of(int peer, std::uint64_t number) const;

  // Changed messages; destroyed after the transport that may still read them.
  std::deque<std::vector<std::byte>> changed_;
  const std::unique_ptr<Transport> inner_;
  const std::vector<Fault> faults_;
  std::vector<std::uint64_t> sent_;  // per peer
};

}  // namespace gradwire::testing

#endif  // GRADWIRE_TESTS_SUPPORT_FAULT_TRANSPORT_H_
