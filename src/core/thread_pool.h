// A few threads that wait for work, made once and kept.
#ifndef GRADWIRE_CORE_THREAD_POOL_H_
#define GRADWIRE_CORE_THREAD_POOL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gradwire::internal {

class ThreadPool {
 public:
  // `threads` in all, that of the caller of run() included. May throw std::bad_alloc, or
  // std::system_error where the system gives no more threads.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls job(worker) once for each worker from 0 to workers - 1, worker 0 on this thread, and
  // returns when all have returned. `job` must not throw. Precondition: workers <= threads(). In a
  // process that was forked from the one that made the pool there is worker 0 only.
  template <typename Job>
  void run(unsigned workers, Job& job) noexcept {
    run(
        workers, [](void* context, unsigned worker) { (*static_cast<Job*>(context))(worker); },
        &job);
  }

 private:
  using Call = void (*)(void* context, unsigned worker);
  void run(unsigned workers, Call call, void* context) noexcept;
  void work(unsigned worker) noexcept;
  void stop() noexcept;

  struct Shared {
    std::mutex mutex;
    std::condition_variable begin;
    std::condition_variable end;
    // Of the job at hand.
    Call call = nullptr;
    void* context = nullptr;
    unsigned workers = 0;
    unsigned running = 0;
    unsigned long round = 0;
    bool stopping = false;
  };

  std::unique_ptr<Shared> shared_;
  int process_;
  std::vector<std::thread> workers_;
};

// CPUs that this process may run on, at least 1.
unsigned allowed_cpus() noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_THREAD_POOL_H_
