// The communication hook of DistributedDataParallel: compresses the all-reduce of each bucket.
//
// A bucket goes from the autograd thread into the queue of one worker thread, which reduces it in
// place and completes the bucket's future; so the backward goes on meanwhile, and no Python runs.
#ifndef GRADWIRE_TORCH_DDP_HOOK_H_
#define GRADWIRE_TORCH_DDP_HOOK_H_

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "channel.h"
#include "gradwire/collective.h"

namespace gradwire {

// What a BucketReducer does with the buckets; may change between two steps.
struct ReducerSettings {
  // Gives the codec of a step, if set. Called by the thread of the backward before a step's first
  // bucket, without a lock held; all ranks must come to the same.
  using ChooseCodec = std::function<Result<CodecSpec>(std::uint64_t step)>;

  CodecSpec codec;  // with choose_codec: until the first bucket
  ChooseCodec choose_codec;
  std::chrono::milliseconds deadline{30000};
  // One of n buckets measures the codec's error; 0: none does.
  std::uint64_t measure_every = 0;
};

// What was done since the settings were last changed. Times of this rank.
struct ReducerStats {
  CollectiveStats collective;   // sums over all buckets that were compressed
  std::uint64_t steps = 0;      // rounds of the reducer (their last bucket was seen)
  std::uint64_t buckets = 0;    // handed over, fallbacks included
  std::uint64_t fallbacks = 0;  // not compressed: sparse gradients, or detached
  std::uint64_t errors = 0;     // buckets that failed
  double exposed_seconds = 0;   // from a step's last bucket to its result: what the backward waits
  std::uint64_t sequence = 0;   // next collective of the sub-group
};

// Reduces buckets on a thread of its own. Shared by the hook (owned by torch's reducer) and the
// handle in Python; the last of them ends the thread.
class BucketReducer {
 public:
  // Turns an Error into what the bucket's future holds. Called by the worker.
  using MakeException = std::function<std::exception_ptr(const Error&)>;
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  // `group`: the group of the model, for fallbacks. `connect`: see Channel.
  BucketReducer(c10::intrusive_ptr<c10d::ProcessGroup> group, internal::Channel::Connect connect,
                MakeException make_exception);
  ~BucketReducer();
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  // Numbers the model's parameters: the number chooses the noise of stochastic rounding, so it
  // must not depend on how DDP fills its buckets. Parameters never listed get the next free
  // numbers as they appear.
  void number_parameters(const std::vector<at::Tensor>& parameters);

  // Waits for the buckets under way, changes the settings, and compares them between the ranks
  // by a collective call: a difference is kPeerMismatch on every rank. After an error the
  // reducer is detached.
  Status configure(const ReducerSettings& settings);
  // As configure(), without the collective call: the first bucket compares.
  Status configure_later(const ReducerSettings& settings);
  // Waits for the buckets under way; from then on buckets take a plain all-reduce over `group`.
  void detach();

  // Takes a bucket over without blocking. The future holds the bucket's buffer, or the error.
  Future submit(c10d::GradBucket& bucket);

  ReducerStats stats() const;
  std::optional<Error> last_error() const;
  std::uint64_t step() const;
  void set_step(std::uint64_t step);
  // Of the step under way, or of the last one.
  CodecSpec codec() const;
  // Until the next step, which may choose another one.
  void set_codec(const CodecSpec& codec);

  // Ends the thread: a bucket under way and those behind it fail. Returns within moments, except
  // while a sub-group is being made (the deadline bounds that). Idempotent.
  void shut_down() noexcept;
  // True on the thread that shut_down() and the destructor wait for, so must not be called by.
  bool on_worker_thread() const noexcept { return worker_.get_id() == std::this_thread::get_id(); }

 private:
  struct Item {
    at::Tensor buffer;
    DType dtype = DType::kFloat32;
    std::vector<PartLayout> parts;
    Future future;
    CollectiveOptions options;
    bool is_first = false;  // in the queue, of its step
    bool is_last = false;   // of its step
    Clock::time_point submitted;
  };

  Future plain_all_reduce(c10d::GradBucket& bucket);
  Future failed(Error error);
  void begin_step();
  std::vector<PartLayout> layout(const c10d::GradBucket& bucket);
  std::uint32_t parameter_number(const at::Tensor& parameter);
  Future enqueue(c10d::GradBucket& bucket, DType dtype);
  void run();
  void process(Item& item);
  void record(const Item& item, const CollectiveStats& done, const Status& status);
  void wait_until_idle();

  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const MakeException make_exception_;
  internal::Channel channel_;

  mutable std::mutex mutex_;  // guards what follows; held for moments
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  bool attached_ = false;
  ReducerSettings settings_;
  std::unordered_map<const c10::TensorImpl*, std::uint32_t> numbers_;
  std::uint32_t next_number_ = 0;
  std::uint64_t step_ = 0;
  bool step_begins_ = true;            // no bucket of this step has gone into the queue yet
  std::optional<Error> choice_error_;  // why this step has no codec: none of its buckets goes out
  ReducerStats stats_;
  std::optional<Error> last_error_;

  std::optional<Error> step_error_;  // worker only: the step's first error, which its rest shares
  std::thread worker_;               // last: starts when all else is there
};

// What torch's reducer owns.
class GradwireHook final : public c10d::CommHookInterface {
 public:
  explicit GradwireHook(std::shared_ptr<BucketReducer> reducer) : reducer_(std::move(reducer)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return reducer_->submit(bucket);
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  std::shared_ptr<BucketReducer> reducer_;
};

// The dtype of the library for one of torch; nullopt for types that cannot be reduced.
std::optional<DType> to_dtype(at::ScalarType type) noexcept;

}  // namespace gradwire

#endif  // GRADWIRE_TORCH_DDP_HOOK_H_
