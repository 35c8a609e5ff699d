// Ranks as threads of one process. Each ordered pair of ranks has a channel; the k-th message of
// a channel goes into its k-th slot, copied by whichever side comes second.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>

#include "core/counter_rng.h"
#include "gradwire/transport.h"

namespace gradwire {
namespace {

// Messages from one rank to another. Never both: a message without a slot and a slot without a
// message. So "not delivered" and "the other side is gone" together mean "never delivered".
struct Channel {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::span<const std::byte>> messages;  // sent, no slot yet
  std::deque<std::span<std::byte>> slots;           // posted, no message yet
  std::deque<std::vector<std::byte>> kept;          // bytes of messages whose sender is gone
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
  std::uint64_t delivered = 0;
  bool sender_gone = false;
  bool receiver_gone = false;

  // Call with the mutex held.
  void match() {
    while (!messages.empty() && !slots.empty()) {
      const std::span<const std::byte> message = messages.front();
      std::memcpy(slots.front().data(), message.data(), message.size());
      messages.pop_front();
      slots.pop_front();
      ++delivered;
    }
    changed.notify_all();
  }
};

struct Group {
  Group(int world_size, std::size_t slot, std::uint64_t id)
      : world(world_size),
        slot_bytes(slot),
        group_id(id),
        channels(static_cast<std::size_t>(world_size) * static_cast<std::size_t>(world_size)) {}

  Channel& channel(int from, int to) {
    return channels[static_cast<std::size_t>(from) * static_cast<std::size_t>(world) +
                    static_cast<std::size_t>(to)];
  }

  const int world;
  const std::size_t slot_bytes;
  const std::uint64_t group_id;
  std::vector<Channel> channels;
};

// A request is the direction, the peer and the number of the message in its channel.
constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
constexpr unsigned kPeerShift = 40;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kPeerShift) - 1;

Request make_request(bool receive, int peer, std::uint64_t number) {
  return Request{(receive ? kReceiveBit : 0) | static_cast<std::uint64_t>(peer) << kPeerShift |
                 (number & kNumberMask)};
}

Error make_error(ErrorCode code, std::string message, int rank = -1) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  error.rank = rank;
  return error;
}

Error retired_error() { return make_error(ErrorCode::kRetired, "the transport was retired"); }

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~LocalTransport() override { retire(); }

  int rank() const noexcept override { return rank_; }
  int world() const noexcept override { return group_->world; }
  std::size_t slot_bytes() const noexcept override { return group_->slot_bytes; }
  std::uint64_t group_id() const noexcept override { return group_->group_id; }

  Result<Request> send(int peer, std::span<const std::byte> message) override {
    if (Status valid = check_peer(peer); !valid.ok()) return valid.error();
    if (message.empty() || message.size() > group_->slot_bytes) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a message has 1 to " + std::to_string(group_->slot_bytes) +
                            " bytes, not " + std::to_string(message.size()));
    }
    Channel& channel = group_->channel(rank_, peer);
    const std::lock_guard lock(channel.mutex);
    try {
      if (!channel.receiver_gone) channel.messages.push_back(message);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kOutOfMemory, "no memory for a message queue");
    }
    channel.match();
    return make_request(false, peer, channel.sends++);
  }

  Result<Request> receive(int peer, std::span<std::byte> slot) override {
    if (Status valid = check_peer(peer); !valid.ok()) return valid.error();
    if (slot.size() != group_->slot_bytes) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a slot has exactly " + std::to_string(group_->slot_bytes) +
                            " bytes, not " + std::to_string(slot.size()));
    }
    Channel& channel = group_->channel(peer, rank_);
    const std::lock_guard lock(channel.mutex);
    try {
      channel.slots.push_back(slot);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kOutOfMemory, "no memory for a slot queue");
    }
    channel.match();
    return make_request(true, peer, channel.receives++);
  }

  Status wait(Request request, Clock::time_point deadline) override {
    const auto id = static_cast<std::uint64_t>(request);
    const bool receive = (id & kReceiveBit) != 0;
    const int peer = static_cast<int>((id & ~kReceiveBit) >> kPeerShift);
    const std::uint64_t number = id & kNumberMask;
    if (Status valid = check_peer(peer); !valid.ok()) return valid.error();
    Channel& channel = receive ? group_->channel(peer, rank_) : group_->channel(rank_, peer);
    const bool& peer_gone = receive ? channel.sender_gone : channel.receiver_gone;
    std::unique_lock lock(channel.mutex);
    const auto done = [&] { return channel.delivered > number || peer_gone || retired_.load(); };
    const bool in_time = channel.changed.wait_until(lock, deadline, done);
    if (retired_.load()) return retired_error();
    if (channel.delivered > number) return {};
    const std::string who = "rank " + std::to_string(peer);
    if (!in_time) {
      return make_error(
          ErrorCode::kDeadlineExceeded,
          who + (receive ? " sent nothing in time" : " did not take a message in time"), peer);
    }
    return make_error(ErrorCode::kPeerLost, who + " has left the group", peer);
  }

  void retire() noexcept override {
    if (retired_.exchange(true)) return;
    for (int peer = 0; peer < group_->world; ++peer) {
      if (peer == rank_) continue;
      leave_as_sender(group_->channel(rank_, peer));
      leave_as_receiver(group_->channel(peer, rank_));
    }
  }

 private:
  Status check_peer(int peer) const {
    if (retired_.load()) return retired_error();
    if (peer < 0 || peer >= group_->world || peer == rank_) {
      return make_error(ErrorCode::kInvalidArgument,
                        "rank " + std::to_string(peer) + " is not a peer of rank " +
                            std::to_string(rank_) + " of " + std::to_string(group_->world));
    }
    return {};
  }

  // The sender's memory may go away now, so what is on the way is copied.
  static void leave_as_sender(Channel& channel) noexcept {
    const std::lock_guard lock(channel.mutex);
    try {
      for (std::span<const std::byte>& message : channel.messages) {
        message = channel.kept.emplace_back(message.begin(), message.end());
      }
    } catch (const std::bad_alloc&) {
      channel.messages.clear();  // the peer sees a lost rank instead of the last messages
    }
    channel.sender_gone = true;
    channel.changed.notify_all();
  }

  static void leave_as_receiver(Channel& channel) noexcept {
    const std::lock_guard lock(channel.mutex);
    channel.slots.clear();
    channel.messages.clear();
    channel.receiver_gone = true;
    channel.changed.notify_all();
  }

  const std::shared_ptr<Group> group_;
  const int rank_;
  std::atomic<bool> retired_{false};
};

std::uint64_t new_group_id() {
  static std::atomic<std::uint64_t> counter{0};
  const auto now = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  return internal::mix64(internal::mix64(now) + counter.fetch_add(1));
}

}  // namespace

std::vector<std::unique_ptr<Transport>> make_local_group(int world, std::size_t slot_bytes) {
  std::vector<std::unique_ptr<Transport>> ranks;
  if (world < 1 || slot_bytes == 0) return ranks;
  auto group = std::make_shared<Group>(world, slot_bytes, new_group_id());
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(std::make_unique<LocalTransport>(group, rank));
  }
  return ranks;
}

}  // namespace gradwire
