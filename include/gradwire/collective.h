// Compressed collectives over a Transport.
//
// Guarantees, for every codec: all ranks end with bit-identical values (P2); every frame's
// header is checked, and a difference is reported as kPeerMismatch with field, mine, theirs and
// rank on every rank; errors travel in band, so nobody waits longer than the deadline (P4).
#ifndef GRADWIRE_COLLECTIVE_H_
#define GRADWIRE_COLLECTIVE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "gradwire/codec.h"
#include "gradwire/error_feedback.h"
#include "gradwire/status.h"
#include "gradwire/tensor_view.h"
#include "gradwire/transport.h"

namespace gradwire {

// One parameter inside a flat tensor, in order. See Part for `tensor` and `first_index`.
struct PartLayout {
  std::uint64_t values = 0;
  std::uint32_t tensor = 0;
  std::uint64_t first_index = 0;
};

struct CollectiveOptions {
  CodecSpec codec;
  Reduction reduction = Reduction::kAvg;
  std::uint64_t step = 0;  // optimizer step: chooses the noise, checked across ranks
  std::chrono::milliseconds deadline{300000};
  // Measure the error of this call on the values this rank contributes and owns.
  bool measure_error = false;
  // What this rank's contributions lose is kept here and added to those of its next call; null: it
  // is not. Not owned. With it or without, and with which settings, is checked across ranks.
  ErrorFeedback* error_feedback = nullptr;
};

// What one call did. Times in seconds of this rank's thread; bytes are payload handed to and
// taken from the transport.
struct CollectiveStats {
  std::uint64_t calls = 0;
  std::uint64_t values = 0;
  std::uint64_t raw_bytes_out = 0;      // what the same exchange would send uncompressed
  std::uint64_t encoded_bytes_out = 0;  // sent to other ranks, headers included
  std::uint64_t encoded_bytes_in = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;  // decode and sum
  double wait_seconds = 0;    // blocked on the wire
  double total_seconds = 0;
  std::uint64_t stored_blocks = 0;
  std::uint64_t coded_blocks = 0;
  std::uint64_t fixed_blocks = 0;
  std::uint64_t outliers = 0;
  std::uint64_t nonfinite = 0;  // non-finite values in the results this rank owns
  // Sampled when measure_error is set: sums over this rank's contributions as sent.
  double error_squares = 0;
  double value_squares = 0;

  void add(const CollectiveStats& other);
};

// A group of ranks that calls collectives in the same order. Not thread safe: one thread at a
// time. After an error the group is retired: further calls return kRetired. The one exception are
// errors found before anything was sent (arguments, dtype, codec, memory): the other ranks are
// told, and unless they have failed in the same call as well they give up the group (kPeerError
// there, kPeerLost here at the next call).
class Communicator {
 public:
  struct Options {
    // Raw bytes of the values in one message at most (256Ki float32 values); equal on all ranks.
    std::uint32_t segment_bytes = 1u << 20;
    // Number of the first collective, equal on all ranks. A group that takes the place of one
    // that failed counts on, so that a rank that failed a call later than another one is noticed.
    std::uint64_t first_sequence = 1;
  };
  // Parameters in one message at most; a segment ends there too.
  static constexpr std::uint32_t kMaxSegmentParts = 1024;
  // Slot size for `options`: a stored segment with its header, part table and index.
  static std::size_t slot_bytes(const Options& options);

  Communicator(std::unique_ptr<Transport> transport, const Options& options);
  ~Communicator();
  Communicator(Communicator&&) noexcept;

  int rank() const noexcept;
  int world() const noexcept;
  bool retired() const noexcept;
  std::uint64_t next_sequence() const noexcept;

  // Replaces `data` on every rank by the sum or mean over the ranks, in place.
  // `parts` lists the parameters that lie one after the other in `data` (empty: one part).
  //
  // Result, bit for bit: with x_r the values of rank r (with error feedback: its y, see
  // error_feedback.h) and f32 accumulation (f64 for float64) in rank order,
  //   acc = c_0 + c_1 + ... + c_{W-1}, c_r = decode(encode(x_r)), c_owner = x_owner unrounded,
  //   AVG: acc *= 1/W;  y = round to dtype(acc), a NaN as the quiet NaN without payload;
  //   result = decode(encode(y)).
  // The owner of each shard is a pure function of the parts and the world (shards()).
  // Cost: 2 (W-1)/W of the encoded tensor sent and received per rank; each value is encoded
  // about twice and decoded about twice.
  Status all_reduce(TensorView data, std::span<const PartLayout> parts,
                    const CollectiveOptions& options, CollectiveStats* stats = nullptr);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

// Values [begin, end) of the flat tensor that `rank` owns: borders lie at parameter borders or
// at multiples of 256 inside a parameter. Pure function; empty shards are possible.
struct ShardRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
ShardRange shard_range(std::span<const PartLayout> parts, int world, int rank);

}  // namespace gradwire

#endif  // GRADWIRE_COLLECTIVE_H_
