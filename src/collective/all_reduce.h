// One all_reduce of a Communicator, from entry to result.
//
// Outline. The tensor is cut into one shard per rank and these into segments (schedule.h). In
// round i this rank encodes segment i of every peer's shard and sends it to its owner; then it
// reduces segment i - kLag of its own shard: the peers' contributions are decoded and added in
// rank order, its own values enter raw, the sum is scaled, rounded, encoded once, sent to
// everybody, and decoded into its own tensor as well. So a frame is encoded while others are on
// the wire and an earlier segment is summed.
//
// Between two ranks there is one stream per direction, with contributions and results in turn.
// It is read in order; a result that is met while a contribution is awaited goes to the tensor.
// The first frame of each stream is a contribution, and a rank checks those of all peers before
// it writes a value: a mismatch leaves the tensor as it was.
//
// No deadlock: sends never block, and the contributions for segment t are sent before anything
// of segment t - kLag is awaited. So the rank that has got least far waits only for frames that
// are sent, or for a rank that has failed, and that one has sent an error frame.
#ifndef GRADWIRE_COLLECTIVE_ALL_REDUCE_H_
#define GRADWIRE_COLLECTIVE_ALL_REDUCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/agreement.h"
#include "collective/communicator_impl.h"
#include "collective/error_feedback_impl.h"
#include "frame/header.h"
#include "gradwire/collective.h"

namespace gradwire::internal {

class AllReduce {
 public:
  // `data`, `parts`, `options` and `stats` must outlive the object.
  AllReduce(Communicator::Impl& impl, TensorView data, std::span<const PartLayout> parts,
            const CollectiveOptions& options, std::uint64_t sequence, CollectiveStats* stats);

  // Checks the arguments and allocates. Sends and posts nothing. May throw std::bad_alloc.
  Status prepare();
  // The exchange. After an error the peers must be told, the group retired and abandon() called.
  // May throw std::bad_alloc.
  Status run();
  // Drops what error feedback has kept of a run() that failed.
  void abandon() noexcept;

  // Header of this collective's frames, for error frames; valid at any time.
  const FrameHeader& place() const noexcept { return place_; }

 private:
  // Frames taken from one peer.
  struct Progress {
    std::uint32_t contributions = 0;
    std::uint32_t results = 0;
  };

  Status check_arguments();
  Status make_place();
  Status allocate();

  Status send_contributions(std::uint32_t index);
  Status reduce_segment(std::uint32_t index);
  Status finish_segment(std::uint32_t index);
  const std::byte* compensate(const Segment& segment);
  Result<std::span<const std::byte>> encode_segment(Phase phase, int owner, std::uint32_t index,
                                                    const std::byte* values);
  Status send(int peer, std::span<const std::byte> frame, std::uint64_t values);
  Status compare(std::span<const std::byte> frame, const Segment& segment, const std::byte* sent);

  Status take(int peer);
  Status take_error(int peer, const FrameView& frame);
  Status use(int peer, const FrameView& frame, std::span<const std::byte> bytes);
  ExpectedFrame expect(int peer, Phase phase) const;
  Status decode_to(std::span<const std::byte> frame, const Segment& segment, std::byte* values);
  Status decode_add_to(std::span<const std::byte> frame, const Segment& segment);
  std::span<const TensorView> make_views(const Segment& segment, std::byte* values, DType dtype);

  std::byte* values_at(const Segment& segment) const noexcept;

  Communicator::Impl& impl_;
  const TensorView data_;
  const PartLayout whole_;  // stands for an empty list of parts
  const std::span<const PartLayout> parts_;
  const CollectiveOptions& options_;
  ErrorFeedback::Impl* feedback_ = nullptr;  // set by prepare() if there is one
  CollectiveStats& stats_;
  const Clock::time_point deadline_;
  const int rank_;
  const int world_;
  const std::size_t value_bytes_;
  Agreement agreement_;
  AgreementText agreement_text_{};
  FrameHeader place_;
  std::vector<Progress> progress_;  // one per rank
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_ALL_REDUCE_H_
