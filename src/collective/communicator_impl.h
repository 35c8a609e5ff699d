// What a Communicator keeps between calls.
#ifndef GRADWIRE_COLLECTIVE_COMMUNICATOR_IMPL_H_
#define GRADWIRE_COLLECTIVE_COMMUNICATOR_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collective/exchange.h"
#include "collective/schedule.h"
#include "collective/send_arena.h"
#include "gradwire/collective.h"

namespace gradwire {

struct Communicator::Impl {
  Impl(std::unique_ptr<Transport> transport_in, const Options& options_in)
      : options(options_in),
        sequence(options_in.first_sequence),
        first_failure(sequence),
        exchange(transport_in.get()),
        transport(std::move(transport_in)) {}

  int rank() const noexcept { return transport ? transport->rank() : 0; }
  int world() const noexcept { return transport ? transport->world() : 0; }

  const Options options;
  std::uint64_t sequence;  // of the next collective
  // Calls first_failure..sequence-1 failed on this rank before they sent anything but an error
  // frame, so frames of these numbers may still come; equal to `sequence` if there are none.
  std::uint64_t first_failure;
  bool retired = false;

  internal::ShardSchedule schedule;
  Workspace workspace;
  std::vector<std::byte> accumulators;  // of one segment
  std::vector<std::byte> results;       // rounded values of one segment
  std::vector<std::byte> decoded;       // to measure the error
  std::vector<Part> parts;
  std::vector<TensorView> views;

  // Read by the transport in the background, hence destroyed after it.
  internal::SendArena arena;
  std::vector<std::vector<std::byte>> error_frames;
  internal::Exchange exchange;
  std::unique_ptr<Transport> transport;
};

}  // namespace gradwire

#endif  // GRADWIRE_COLLECTIVE_COMMUNICATOR_IMPL_H_
