// A Communicator that is made at the first call and again after an error.
#ifndef GRADWIRE_TORCH_CHANNEL_H_
#define GRADWIRE_TORCH_CHANNEL_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "gradwire/collective.h"

namespace gradwire::internal {

// One group of ranks over its successive sub-groups. Calls are serialized; every rank makes the
// same calls in the same order.
class Channel {
 public:
  // Makes a new sub-group, collectively, and gives up the one it made before. `slot_bytes` is
  // the capacity of its transport. Called by whichever thread needs the sub-group.
  using Connect = std::function<Result<std::unique_ptr<Transport>>(std::size_t slot_bytes)>;

  // Sequence numbers in a sub-group that takes the place of another one. kContinues: the n-th call
  // of this rank has number n, whatever became of those before, so that ranks of which one failed
  // a call later than the others cannot mistake each other's calls. kRestarts: from 1, where the
  // step tells calls apart and ranks leave calls out after an error.
  enum class Numbering { kRestarts, kContinues };

  Channel(Connect connect, Numbering numbering);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // What a call does when there is no sub-group, or an error has retired it. All ranks must
  // choose the same: after an error the calls already under way fail, and a new sub-group is
  // made where all ranks know that they stand at the same call.
  enum class IfRetired { kFail, kReconnect };

  Status all_reduce(TensorView data, std::span<const PartLayout> parts,
                    const CollectiveOptions& options, IfRetired if_retired,
                    CollectiveStats* stats = nullptr);

  // Ends a call in progress, and lets later ones fail with kRetired. Any thread; returns at once.
  void close() noexcept;

  // Number of the next collective of the current sub-group; 0 if there is none.
  std::uint64_t next_sequence() const;

 private:
  Status ensure_connected(IfRetired if_retired);
  void drop_communicator();

  const Connect connect_;
  const Numbering numbering_;
  mutable std::mutex call_mutex_;  // held during a call
  std::uint64_t calls_ = 0;
  bool failed_ = false;  // the last call of communicator_: no rank uses it any more
  std::optional<Communicator> communicator_;

  mutable std::mutex state_mutex_;  // guards what follows; held for moments
  Transport* transport_ = nullptr;  // of communicator_, which owns it
  std::uint64_t next_sequence_ = 0;
  bool closed_ = false;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_TORCH_CHANNEL_H_
