#include "fuzz/mutate_run.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "fuzz/guarded_memory.h"
#include "support/mutate.h"

namespace gradwire::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kInputBytes = 1u << 17;  // the largest frame of the corpus, doubled
constexpr std::size_t kBufferBytes = 1u << 20;

// What worker and parent share.
struct Shared {
  std::atomic<std::uint64_t> frames{0};
  std::atomic<std::uint64_t> outcomes[64] = {};
};

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

const std::vector<std::byte>& pick(const Corpus& corpus, std::uint64_t mixed) {
  const auto& frames = mixed % 64 == 0 && !corpus.large.empty() ? corpus.large : corpus.small;
  return frames[static_cast<std::size_t>((mixed >> 8) % frames.size())];
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// By turns with the guard behind and before the frame.
std::span<std::byte> place(const GuardedMemory& memory, std::span<const std::byte> frame,
                           std::uint64_t number) {
  const std::size_t size = std::min(frame.size(), memory.capacity());
  const auto bytes = number % 4 == 3 ? memory.at_start(size) : memory.at_end(size);
  if (size > 0) std::memcpy(bytes.data(), frame.data(), size);
  return bytes;
}

void work(const Corpus& corpus, const MutateRun& run, const FrameCheckMaker& make_check,
          Shared* shared) {
  const Clock::time_point start = Clock::now();
  const GuardedMemory input(kInputBytes);
  if (!input.ok()) _exit(3);
  const FrameCheck check = make_check();
  for (std::uint64_t n = 0; n < run.most_frames; ++n) {
    if (n % 64 == 0 && since(start) >= run.seconds) return;
    const std::uint64_t number = run.first + n;
    const std::vector<std::byte> frame = damaged_frame(corpus, run, number);
    const int outcome = check(place(input, frame, number), number);
    if (run.unmended && outcome == 0 && frame != pick(corpus, mix(mix(run.seed) + number)))
      _exit(4);
    shared->outcomes[outcome & 63].fetch_add(1, std::memory_order_relaxed);
    shared->frames.store(n + 1, std::memory_order_relaxed);
  }
}

// Processor time that the worker has used: on a busy machine it may stand still without a fault.
double worker_seconds(pid_t worker) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(worker, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Waits for the end of the worker, kills it when it hangs. Empty: it came to its own end.
std::string wait_for(pid_t worker, const MutateRun& run, const Shared& shared) {
  std::uint64_t seen = 0;
  double moved = worker_seconds(worker);
  for (;;) {
    int status = 0;
    if (waitpid(worker, &status, WNOHANG) == worker) {
      if (WIFSIGNALED(status)) return std::string("signal: ") + strsignal(WTERMSIG(status));
      if (WEXITSTATUS(status) == 0) return {};
      if (WEXITSTATUS(status) == 4) return "damage was not noticed";
      return "exit status " + std::to_string(WEXITSTATUS(status));
    }
    const std::uint64_t frames = shared.frames.load();
    if (frames != seen) {
      seen = frames;
      moved = worker_seconds(worker);
    } else if (worker_seconds(worker) - moved > run.hang_seconds) {
      kill(worker, SIGKILL);
      waitpid(worker, &status, 0);
      return "hangs";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

std::vector<std::byte> damaged_frame(const Corpus& corpus, const MutateRun& run,
                                     std::uint64_t number) {
  const std::uint64_t mixed = mix(mix(run.seed) + number);
  const std::vector<std::byte>& frame = pick(corpus, mixed);
  return run.unmended ? damaged(frame, mixed) : mutated(frame, mixed);
}

FrameCheck make_guarded_check() {
  // Parts of a frame twice over: a second decode is compared.
  const auto buffers = std::make_shared<GuardedBuffers>(32, kBufferBytes);
  const auto workspace = std::make_shared<Workspace>();
  if (!buffers->ok()) _exit(3);
  return [buffers, workspace](std::span<const std::byte> frame, std::uint64_t number) {
    return check_decode(frame, number % 8 == 0, *buffers, *workspace);
  };
}

MutateResult run_mutations(const Corpus& corpus, const MutateRun& run,
                           const FrameCheckMaker& make_check) {
  MutateResult result;
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    result.finding = "no shared memory";
    return result;
  }
  Shared* const shared = new (memory) Shared;
  const Clock::time_point start = Clock::now();
  std::fflush(nullptr);
  const pid_t worker = fork();
  if (worker == 0) {
    work(corpus, run, make_check, shared);
    _exit(0);
  }
  result.finding = worker < 0 ? "no worker could be started" : wait_for(worker, run, *shared);
  result.frames = shared->frames;
  result.number = run.first + result.frames;
  for (std::size_t i = 0; i < result.outcomes.size(); ++i) result.outcomes[i] = shared->outcomes[i];
  result.seconds = since(start);
  munmap(memory, sizeof(Shared));
  return result;
}

}  // namespace gradwire::test
