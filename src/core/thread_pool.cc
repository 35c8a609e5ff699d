#include "core/thread_pool.h"

#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>

namespace gradwire::internal {

ThreadPool::ThreadPool(unsigned threads) : shared_(std::make_unique<Shared>()), process_(getpid()) {
  workers_.reserve(threads - 1);
  try {
    for (unsigned worker = 1; worker < threads; ++worker) {
      workers_.emplace_back([this, worker] { work(worker); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  if (getpid() == process_) {
    stop();
  } else {
    // Forked: the threads are the parent's. Joining them would wait for ever, and so would the end
    // of a condition variable on which they wait: it is left.
    for (std::thread& worker : workers_) worker.detach();
    static_cast<void>(shared_.release());
  }
}

void ThreadPool::stop() noexcept {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->begin.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(unsigned workers, Call call, void* context) noexcept {
  if (workers <= 1 || getpid() != process_) return call(context, 0);
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->call = call;
    shared_->context = context;
    shared_->workers = workers;
    shared_->running = workers - 1;
    ++shared_->round;
  }
  shared_->begin.notify_all();
  call(context, 0);
  std::unique_lock lock(shared_->mutex);
  shared_->end.wait(lock, [this] { return shared_->running == 0; });
}

void ThreadPool::work(unsigned worker) noexcept {
  unsigned long seen = 0;
  std::unique_lock lock(shared_->mutex);
  while (true) {
    shared_->begin.wait(lock, [&] { return shared_->stopping || shared_->round != seen; });
    if (shared_->stopping) return;
    seen = shared_->round;
    if (worker >= shared_->workers) continue;
    const Call call = shared_->call;
    void* const context = shared_->context;
    lock.unlock();
    call(context, worker);
    lock.lock();
    if (--shared_->running == 0) shared_->end.notify_one();
  }
}

unsigned allowed_cpus() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  }
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace gradwire::internal
