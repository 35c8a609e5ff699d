// How bytes get from rank to rank. Gradwire has no network stack of its own: implementations
// put c10d, MPI or threads behind this interface.
//
// Contract (design: "Transport contract"). Between two ranks there is one ordered stream of
// messages in each direction. A receiver posts slots of one capacity, fixed when the group is
// made, whatever is sent; a message may be shorter. The true length is in the frame header.
// Reason: Gloo ends the process when a message is longer than the posted receive and accepts a
// shorter one without a word, so nothing that two ranks could disagree about may decide a size
// or a tag.
#ifndef GRADWIRE_TRANSPORT_H_
#define GRADWIRE_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gradwire/status.h"

namespace gradwire {

using Clock = std::chrono::steady_clock;

// Names one posted send or receive of one transport.
enum class Request : std::uint64_t {};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const noexcept = 0;
  virtual int world() const noexcept = 0;
  virtual std::size_t slot_bytes() const noexcept = 0;
  // Equal on all ranks of the group, different for two groups of one process with high
  // probability.
  virtual std::uint64_t group_id() const noexcept = 0;

  // Starts to send `message` (1 to slot_bytes() bytes) to `peer`. The bytes must stay unchanged
  // until wait() of the request has returned without an error, or the transport is retired.
  virtual Result<Request> send(int peer, std::span<const std::byte> message) = 0;
  // Posts `slot` (exactly slot_bytes() bytes) for the next message from `peer`. Same rule.
  virtual Result<Request> receive(int peer, std::span<std::byte> slot) = 0;
  // Blocks until the request is done. Each request is waited for exactly once; requests of one
  // stream in the order in which they were posted.
  // Errors: kPeerLost, kDeadlineExceeded, kRetired. After one of them the caller may still try to
  // send an error frame to the others, and must then retire(); no other use is defined.
  virtual Status wait(Request request, Clock::time_point deadline) = 0;

  // Ends all use: pending and later waits fail with kRetired. What was sent before is still
  // delivered as far as that is possible without this rank; then waits of the peers for it fail
  // with kPeerLost. Idempotent; never blocks for long. May be called from another thread.
  virtual void retire() noexcept = 0;
};

// Ranks as threads of one process: for tests, examples and embedding. All transports of the
// group share state; one is destroyed only after its own waits have returned.
std::vector<std::unique_ptr<Transport>> make_local_group(int world, std::size_t slot_bytes);

}  // namespace gradwire

#endif  // GRADWIRE_TRANSPORT_H_
