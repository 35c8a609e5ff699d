#include "exhaustive/workers.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

namespace gradwire::test {
namespace {

using Clock = std::chrono::steady_clock;

// What the processes share.
struct Shared {
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> violated{false};
  char text[400] = {};
};

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// Step `index` of `planned` through the case's chunks: the number of a chunk.
// All: an odd factor (the counts of large cases are powers of two) makes a part that was stopped
// early a spread one. Sample: one chunk of each of `planned` strata; of four strata one has its
// first chunk taken, one its middle, one its last (ties and carries are there), one any.
std::uint64_t chunk_at(const ExhaustiveCase& one, const Plan& plan, std::uint64_t planned,
                       std::uint64_t index) {
  if (planned == one.chunks) {
    const bool power_of_two = (one.chunks & (one.chunks - 1)) == 0;
    return power_of_two ? index * 0x9E3779B1u & (one.chunks - 1) : index;
  }
  const std::uint64_t begin = index * one.chunks / planned;
  const std::uint64_t size = (index + 1) * one.chunks / planned - begin;
  switch (index % 4) {
    case 0:
      return begin;
    case 1:
      return begin + size / 2;
    case 2:
      return begin + size - 1;
    default:
      return begin + mix(plan.seed + index) % size;
  }
}

void work(const ExhaustiveCase& one, const Plan& plan, std::uint64_t planned, Shared* shared) {
  const ChunkCheck check = one.make_check();
  while (!shared->violated && Clock::now() < plan.end) {
    const std::uint64_t index = shared->next.fetch_add(1);
    if (index >= planned) return;
    const std::uint64_t chunk = chunk_at(one, plan, planned, index);
    const std::string violation = check(chunk);
    if (!violation.empty() && !shared->violated.exchange(true)) {
      std::snprintf(shared->text, sizeof(shared->text), "chunk %llu: %s",
                    static_cast<unsigned long long>(chunk), violation.c_str());
    }
    shared->done.fetch_add(1);
  }
}

// Waits for the workers; returns what went wrong with one of them.
std::string wait_for(std::vector<pid_t> workers, const ExhaustiveCase& one, std::uint64_t planned,
                     const Shared& shared) {
  std::string trouble;
  Clock::time_point report = Clock::now() + std::chrono::seconds(10);
  while (!workers.empty()) {
    std::erase_if(workers, [&trouble](pid_t worker) {
      int status = 0;
      if (waitpid(worker, &status, WNOHANG) == 0) return false;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        trouble = "a worker ended with status " + std::to_string(status);
      }
      return true;
    });
    if (Clock::now() > report) {
      report += std::chrono::seconds(10);
      std::fprintf(stderr, "  %s: %.0f %%\n", one.name.c_str(),
                   100.0 * static_cast<double>(shared.done.load()) / static_cast<double>(planned));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return trouble;
}

}  // namespace

CaseResult run_case(const ExhaustiveCase& one, const Plan& plan) {
  CaseResult result;
  result.planned = one.chunks;
  if (plan.patterns > 0) {
    const std::uint64_t cost = one.cost > 0 ? one.cost : one.patterns;
    const std::uint64_t wanted = (plan.patterns + cost - 1) / cost;
    result.planned = std::min(one.chunks, wanted);
  }
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    result.violation = "no shared memory";
    return result;
  }
  Shared* const shared = new (memory) Shared;
  const Clock::time_point start = Clock::now();
  std::fflush(nullptr);
  std::vector<pid_t> workers;
  for (unsigned i = 0; i < plan.jobs; ++i) {
    const pid_t worker = fork();
    if (worker == 0) {
      work(one, plan, result.planned, shared);
      _exit(0);
    }
    if (worker > 0) workers.push_back(worker);
  }
  if (workers.empty()) result.violation = "no worker could be started";
  const std::string trouble = wait_for(workers, one, result.planned, *shared);
  if (!trouble.empty()) result.violation = trouble;
  if (shared->violated) result.violation = shared->text;
  result.chunks = shared->done;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  munmap(memory, sizeof(Shared));
  return result;
}

}  // namespace gradwire::test
