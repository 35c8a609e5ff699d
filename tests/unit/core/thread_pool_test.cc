#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace gradwire::internal {
namespace {

TEST(ThreadPool, RunsEachWorkerOnceAndWaitsForAll) {
  ThreadPool pool(4);
  ASSERT_EQ(pool.threads(), 4u);
  for (int round = 0; round < 2000; ++round) {
    const unsigned workers = 1 + static_cast<unsigned>(round) % 4;
    std::vector<int> calls(4, 0);  // written by one worker each, read after all
    auto job = [&](unsigned worker) { ++calls[worker]; };
    pool.run(workers, job);
    for (unsigned worker = 0; worker < 4; ++worker) {
      ASSERT_EQ(calls[worker], worker < workers ? 1 : 0) << "round " << round;
    }
  }
}

TEST(ThreadPool, WorkerZeroIsTheCaller) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  auto job = [&](unsigned worker) {
    (worker == 0 ? first : second) = std::this_thread::get_id() == caller;
  };
  pool.run(2, job);
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

TEST(ThreadPool, UnusedAndOfOneThreadEnds) {
  const ThreadPool unused(3);
  ThreadPool one(1);
  int calls = 0;
  auto job = [&](unsigned) { ++calls; };
  one.run(1, job);
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, AForkedChildWorksAlone) {
  ThreadPool pool(3);
  int calls = 0;
  auto job = [&](unsigned worker) { calls += worker == 0 ? 1 : 100; };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang is a failure
    pool.run(3, job);
    pool.~ThreadPool();
    _exit(calls == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPool, ThereIsACpu) { EXPECT_GE(allowed_cpus(), 1u); }

}  // namespace
}  // namespace gradwire::internal
