#include "ddp_hook.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

Error error_of(ErrorCode code, std::string field, std::string message) {
  Error error;
  error.code = code;
  error.field = std::move(field);
  error.message = std::move(message);
  return error;
}

BucketReducer::Future make_future() {
  return c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
}

// One bucket of each run of `every`, and not the same of every step when `every` is a multiple of
// a step's buckets: the place in the run moves on by one from run to run.
bool is_sampled(std::uint64_t bucket, std::uint64_t every) {
  return every != 0 && bucket % every == bucket / every % every;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::optional<DType> to_dtype(at::ScalarType type) noexcept {
  switch (type) {
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kHalf:
      return DType::kFloat16;
    case at::kBFloat16:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

BucketReducer::BucketReducer(c10::intrusive_ptr<c10d::ProcessGroup> group,
                             internal::Channel::Connect connect, MakeException make_exception)
    : group_(std::move(group)),
      make_exception_(std::move(make_exception)),
      channel_(std::move(connect), internal::Channel::Numbering::kRestarts),
      worker_([this] { run(); }) {}

BucketReducer::~BucketReducer() { shut_down(); }

void BucketReducer::shut_down() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  channel_.close();
  if (worker_.joinable()) worker_.join();
}

// ---- settings ----

void BucketReducer::number_parameters(const std::vector<at::Tensor>& parameters) {
  const std::lock_guard lock(mutex_);
  numbers_.clear();
  next_number_ = 0;
  for (const at::Tensor& parameter : parameters) {
    numbers_.emplace(parameter.unsafeGetTensorImpl(), next_number_++);
  }
}

void BucketReducer::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || (queue_.empty() && !busy_); });
}

Status BucketReducer::configure_later(const ReducerSettings& settings) {
  wait_until_idle();
  ReducerSettings old;  // dropped without the lock: its choose_codec may wait for the GIL
  const std::lock_guard lock(mutex_);
  if (stopping_) return error_of(ErrorCode::kRetired, "", "this handle was shut down");
  old = std::exchange(settings_, settings);
  choice_error_.reset();
  attached_ = true;
  stats_ = {};
  return {};
}

Status BucketReducer::configure(const ReducerSettings& settings) {
  detach();
  // Enough values for a block that the codec really encodes.
  std::vector<float> probe(4096, 0.0f);
  CollectiveOptions options;
  options.codec = settings.codec;
  options.deadline = settings.deadline;
  options.step = step();
  Status status = channel_.all_reduce({probe.data(), probe.size(), DType::kFloat32}, {}, options,
                                      internal::Channel::IfRetired::kReconnect);
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    last_error_ = status.error();
    return status;
  }
  return configure_later(settings);
}

void BucketReducer::detach() {
  wait_until_idle();
  const std::lock_guard lock(mutex_);
  attached_ = false;
}

std::uint64_t BucketReducer::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

void BucketReducer::set_step(std::uint64_t step) {
  wait_until_idle();
  const std::lock_guard lock(mutex_);
  step_ = step;
}

CodecSpec BucketReducer::codec() const {
  const std::lock_guard lock(mutex_);
  return settings_.codec;
}

void BucketReducer::set_codec(const CodecSpec& codec) {
  wait_until_idle();
  const std::lock_guard lock(mutex_);
  settings_.codec = codec;
}

ReducerStats BucketReducer::stats() const {
  const std::uint64_t sequence = channel_.next_sequence();
  const std::lock_guard lock(mutex_);
  ReducerStats stats = stats_;
  stats.sequence = sequence;
  return stats;
}

std::optional<Error> BucketReducer::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

// ---- on the autograd thread ----

BucketReducer::Future BucketReducer::failed(Error error) {
  Future future = make_future();
  future->setError(make_exception_(error));
  const std::lock_guard lock(mutex_);
  ++stats_.errors;
  last_error_ = std::move(error);
  return future;
}

BucketReducer::Future BucketReducer::plain_all_reduce(c10d::GradBucket& bucket) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.buckets;
    ++stats_.fallbacks;
    if (bucket.isLast()) ++step_, ++stats_.steps;
  }
  try {
    std::vector<at::Tensor> tensors{bucket.getBuffer()};
    tensors[0].div_(group_->getSize());  // first, as DDP does: half types must not overflow
    return group_->allreduce(tensors)->getFuture();
  } catch (...) {
    Future future = make_future();
    future->setError(std::current_exception());
    return future;
  }
}

std::uint32_t BucketReducer::parameter_number(const at::Tensor& parameter) {
  const auto [found, is_new] = numbers_.try_emplace(parameter.unsafeGetTensorImpl(), next_number_);
  if (is_new) ++next_number_;
  return found->second;
}

std::vector<PartLayout> BucketReducer::layout(const c10d::GradBucket& bucket) {
  std::vector<PartLayout> parts;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    parts.push_back({static_cast<std::uint64_t>(parameter.numel()), parameter_number(parameter)});
  }
  return parts;
}

void BucketReducer::begin_step() {
  ReducerSettings::ChooseCodec choose;
  std::uint64_t step = 0;
  {
    const std::lock_guard lock(mutex_);
    step_begins_ = true;
    choice_error_.reset();
    if (!attached_) return;
    choose = settings_.choose_codec;
    step = step_;
  }
  if (!choose) return;
  const Result<CodecSpec> codec = choose(step);
  const std::lock_guard lock(mutex_);
  if (codec.ok()) {
    settings_.codec = *codec;
  } else {
    choice_error_ = codec.error();
  }
}

BucketReducer::Future BucketReducer::submit(c10d::GradBucket& bucket) {
  const at::Tensor& buffer = bucket.getBuffer();
  // Not "after a last bucket": a backward that raised has seen none.
  if (bucket.getIndex() == 0) begin_step();
  bool attached = false;
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    attached = attached_;
    error = choice_error_;
    if (error.has_value() && bucket.isLast()) ++step_, ++stats_.steps;
  }
  if (error.has_value()) return failed(std::move(*error));
  // Gloo adds sparse gradients itself; their values are too few per index to be worth more.
  if (!attached || buffer.layout() != at::kStrided) return plain_all_reduce(bucket);
  if (!buffer.device().is_cpu()) {
    return failed(error_of(ErrorCode::kInvalidArgument, "device",
                           "gradients are on " + buffer.device().str() +
                               "; Gradwire compresses gradients in CPU memory only"));
  }
  const std::optional<DType> dtype = to_dtype(buffer.scalar_type());
  if (!dtype.has_value() || !buffer.is_contiguous()) {
    return failed(error_of(ErrorCode::kUnsupportedDType, "dtype",
                           std::string("a bucket of type ") + c10::toString(buffer.scalar_type()) +
                               " cannot be reduced"));
  }
  return enqueue(bucket, *dtype);
}

BucketReducer::Future BucketReducer::enqueue(c10d::GradBucket& bucket, DType dtype) {
  Item item;
  item.buffer = bucket.getBuffer();
  item.dtype = dtype;
  item.future = make_future();
  item.is_last = bucket.isLast();
  item.submitted = Clock::now();
  Future future = item.future;
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      item.parts = layout(bucket);
      item.options.codec = settings_.codec;
      item.options.step = step_;
      item.options.deadline = settings_.deadline;
      item.is_first = std::exchange(step_begins_, false);
      item.options.measure_error = is_sampled(stats_.buckets, settings_.measure_every);
      ++stats_.buckets;
      if (item.is_last) ++step_, ++stats_.steps;
      queue_.push_back(std::move(item));
      changed_.notify_all();
      return future;
    }
  }
  return failed(error_of(ErrorCode::kRetired, "", "this handle was shut down"));
}

// ---- on the worker thread ----

void BucketReducer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    process(item);
    item = Item();  // the buffer may be the model's last reference: freed without the lock
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void BucketReducer::process(Item& item) {
  if (item.is_first) step_error_.reset();
  CollectiveStats done;
  Status status;
  if (step_error_.has_value()) {
    status = *step_error_;
  } else {
    using IfRetired = internal::Channel::IfRetired;
    status = channel_.all_reduce(
        {item.buffer.data_ptr(), static_cast<std::uint64_t>(item.buffer.numel()), item.dtype},
        item.parts, item.options, item.is_first ? IfRetired::kReconnect : IfRetired::kFail, &done);
    if (!status.ok()) step_error_ = status.error();
  }
  record(item, done, status);
  if (status.ok()) {
    item.future->markCompleted(item.buffer);
  } else {
    item.future->setError(make_exception_(status.error()));
  }
}

void BucketReducer::record(const Item& item, const CollectiveStats& done, const Status& status) {
  const std::lock_guard lock(mutex_);
  stats_.collective.add(done);
  if (item.is_last) stats_.exposed_seconds += seconds_since(item.submitted);
  if (!status.ok()) {
    ++stats_.errors;
    last_error_ = status.error();
  }
}

}  // namespace gradwire
