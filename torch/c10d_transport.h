// gradwire::Transport over a process group of c10d, for Gloo.
//
// What Gloo does (measured) and what follows from it:
//   * a message longer than the posted receive ends the process, a shorter one is accepted:
//     every receive is a whole slot, every message at most one;
//   * messages of one tag between two ranks keep their order: one tag for everything;
//   * a Work shows completion in wait() alone: every Work is kept until it was waited for;
//   * a wait that times out closes all connections of its group: the only timeout is the
//     deadline. Give it a group of its own;
//   * a lost connection leaves the others as they are: over them the caller tells who was lost.
#ifndef GRADWIRE_TORCH_C10D_TRANSPORT_H_
#define GRADWIRE_TORCH_C10D_TRANSPORT_H_

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "gradwire/transport.h"

namespace gradwire {

class C10dTransport final : public Transport {
 public:
  // The tag of every message. The group is used for nothing else, so any number will do.
  static constexpr int kTag = 7070;

  // `group` has a Gloo backend for CPU tensors, is used by nobody else, and has the same
  // `slot_bytes` on all ranks.
  C10dTransport(c10::intrusive_ptr<c10d::ProcessGroup> group, std::size_t slot_bytes);
  ~C10dTransport() override;
  C10dTransport(const C10dTransport&) = delete;
  C10dTransport& operator=(const C10dTransport&) = delete;

  int rank() const noexcept override { return rank_; }
  int world() const noexcept override { return world_; }
  std::size_t slot_bytes() const noexcept override { return slot_bytes_; }
  std::uint64_t group_id() const noexcept override { return group_id_; }

  Result<Request> send(int peer, std::span<const std::byte> message) override;
  Result<Request> receive(int peer, std::span<std::byte> slot) override;
  Status wait(Request request, Clock::time_point deadline) override;

  // May be called by another thread; waits in progress end at once.
  void retire() noexcept override;

 private:
  struct Pending {
    c10::intrusive_ptr<c10d::Work> work;
    int peer = -1;
    bool is_send = false;
  };
  enum class Direction { kSend, kReceive };

  Result<Request> post(Direction direction, int peer, void* data, std::size_t bytes);
  Status check_post(int peer, std::size_t bytes, bool size_fits) const;
  Error retired_error() const;
  // The Error for what a c10d call threw; `after_deadline` tells a timeout from a lost peer.
  Error failure(const Pending& pending, const std::string& what, bool after_deadline) const;

  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const int rank_;
  const int world_;
  const std::size_t slot_bytes_;
  const std::uint64_t group_id_;

  mutable std::mutex mutex_;  // guards what follows; never held while waiting
  bool retired_ = false;
  std::uint64_t next_request_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;
};

}  // namespace gradwire

#endif  // GRADWIRE_TORCH_C10D_TRANSPORT_H_
