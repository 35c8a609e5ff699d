// The streams between this rank and its peers during a collective: posted slots, sends that
// nobody has waited for yet, bytes and time on the wire.
#ifndef GRADWIRE_COLLECTIVE_EXCHANGE_H_
#define GRADWIRE_COLLECTIVE_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gradwire/transport.h"

namespace gradwire::internal {

class Exchange {
 public:
  // Slots posted per peer at most: enough that the wire has work while a frame is decoded.
  static constexpr std::uint64_t kWindow = 4;

  // `transport` may be null if no other member is used. May throw std::bad_alloc.
  explicit Exchange(Transport* transport)
      : transport_(transport),
        streams_(transport != nullptr ? static_cast<std::size_t>(transport->world()) : 0) {}

  // Starts a collective in which `frames[p]` messages come from each peer p (entry of this rank
  // ignored): never more receives are posted, as one too many would swallow a message of the
  // next collective. May throw std::bad_alloc; nothing is posted yet.
  void begin(std::span<const std::uint64_t> frames, Clock::time_point deadline);
  // Posts the first slots of all peers.
  Status post_all();

  // Waits for the oldest message of `peer`: its slot, which is valid until release(). Where a
  // message is short, the rest of a header is zero and what follows is left from another message.
  Result<std::span<const std::byte>> next(int peer);
  // Gives the slot of next() back and posts it again if more messages are to come.
  Status release(int peer);
  // The message of next() did not count: one more is to come from `peer`.
  void expect_one_more(int peer) { ++streams_[static_cast<std::size_t>(peer)].expected; }
  bool done(int peer) const {
    const Stream& stream = streams_[static_cast<std::size_t>(peer)];
    return stream.consumed == stream.expected;
  }

  // Sends to `peer`; the message must stay until finish() or drain() has returned.
  Status send(int peer, std::span<const std::byte> message);
  // Waits for all sends.
  Status finish();
  // The peer said its last word, or cannot say any more.
  void end(int peer) { streams_[static_cast<std::size_t>(peer)].ended = true; }
  // After an error, when every rank says its last word to every other: reads what the peers have
  // sent up to theirs, which `is_last` recognizes, and lets them take what was sent here. Neither
  // for longer than `limit`.
  void drain(bool (*is_last)(std::span<const std::byte> slot), Clock::time_point limit);

  // Of the collective since begin().
  std::uint64_t bytes_out() const noexcept { return bytes_out_; }
  double wait_seconds() const noexcept { return wait_seconds_; }

 private:
  struct Stream {
    std::unique_ptr<std::byte[]> slots;  // kWindow slots, from the first use on
    std::uint64_t expected = 0;
    std::uint64_t posted = 0;
    std::uint64_t consumed = 0;
    bool taken = false;  // next() without release()
    bool ended = false;
    Request receives[kWindow] = {};
    std::vector<Request> sends;
    std::size_t waited = 0;  // of the sends
  };

  Status post(int peer);
  Status wait(Request request);
  std::span<std::byte> slot(Stream& stream, std::uint64_t number) const;

  Transport* const transport_;
  std::vector<Stream> streams_;  // one per rank
  Clock::time_point deadline_{};
  std::uint64_t bytes_out_ = 0;
  double wait_seconds_ = 0;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_COLLECTIVE_EXCHANGE_H_
