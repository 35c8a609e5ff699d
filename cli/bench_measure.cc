// Times of encode, decode and memcpy of the same bytes.
//
// The clock is the processor time of this thread: what others do on the machine counts only where
// they take its caches and memory, and that memcpy, measured beside each, feels too. With several
// threads it is the clock on the wall.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "bench.h"
#include "failure.h"

namespace gradwire::cli {
namespace {

// A measurement takes at least this long: the call is repeated in it.
constexpr double kLeastSeconds = 0.002;

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds per call.
template <typename Call>
double time_of(int calls, const Call& call, clockid_t clock) {
  const double start = seconds_of(clock);
  for (int i = 0; i < calls; ++i) call();
  return std::max(seconds_of(clock) - start, 1e-9) / calls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One frame of all copies, and the buffers that its calls use again.
struct Bench {
  explicit Bench(const CodecSpec& spec) : codec(spec) {}

  const CodecSpec& codec;
  std::vector<Part> parts;
  std::vector<TensorView> views;
  std::unique_ptr<std::byte[]> encoded;
  std::size_t capacity = 0;
  std::size_t length = 0;
  std::vector<std::byte> decoded;
  Workspace workspace;
  Status status;

  void encode_once() {
    const Result<std::size_t> result =
        encode(codec, parts, {}, {encoded.get(), capacity}, workspace);
    if (result.ok()) {
      length = *result;
    } else {
      status = named(result.error());
    }
  }
  void decode_once() {
    const Status result = decode({encoded.get(), length}, views, workspace);
    if (!result.ok()) status = named(result.error());
  }
};

void prepare(const BenchInput& input, Bench& bench) {
  const std::size_t size = dtype_size(input.dtype);
  bench.decoded.resize(input.data.size());
  std::size_t offset = 0;
  for (std::uint64_t copy = 0; copy < input.copies; ++copy) {
    for (std::size_t i = 0; i < input.counts.size(); ++i) {
      const std::uint64_t count = input.counts[i];
      bench.parts.push_back({.values = {input.data.data() + offset, count, input.dtype},
                             .tensor = static_cast<std::uint32_t>(i)});
      bench.views.push_back({bench.decoded.data() + offset, count, input.dtype});
      offset += count * size;
    }
  }
  bench.capacity =
      max_encoded_size(bench.codec, input.dtype, input.values * input.copies, bench.parts.size());
  bench.encoded = std::make_unique<std::byte[]>(bench.capacity);
}

int calls_for(double seconds) {
  return static_cast<int>(std::clamp(std::ceil(kLeastSeconds / seconds), 1.0, 1e6));
}

}  // namespace

Result<BenchMeasure> measure(const BenchInput& input, const CodecSpec& codec, int runs,
                             unsigned threads) {
  Bench bench(codec);
  const Status set = bench.workspace.set_threads(threads);
  if (!set.ok()) return named(set.error());
  const clockid_t clock =
      bench.workspace.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  prepare(input, bench);
  std::byte* target = bench.decoded.data();
  const auto copy = [&] { std::memcpy(target, input.data.data(), input.data.size()); };
  const auto encode = [&] { bench.encode_once(); };
  const auto decode = [&] { bench.decode_once(); };
  // The first calls touch all memory; they are not counted, only used to size the others.
  const int copy_calls = (copy(), calls_for(time_of(1, copy, clock)));
  const int encode_calls = (encode(), calls_for(time_of(1, encode, clock)));
  if (!bench.status.ok()) return bench.status.error();
  const int decode_calls = (decode(), calls_for(time_of(1, decode, clock)));
  std::vector<double> copies;
  std::vector<double> encodes;
  std::vector<double> decodes;
  for (int run = 0; run < runs; ++run) {
    copies.push_back(time_of(copy_calls, copy, clock));
    encodes.push_back(time_of(encode_calls, encode, clock));
    copies.push_back(time_of(copy_calls, copy, clock));
    decodes.push_back(time_of(decode_calls, decode, clock));
  }
  if (!bench.status.ok()) return bench.status.error();
  const double gigabytes = 1e-9 * static_cast<double>(input.data.size());
  BenchMeasure measure;
  measure.threads = bench.workspace.threads();
  measure.encoded_bytes = static_cast<double>(bench.length);
  measure.encode_gbps = gigabytes / median(std::move(encodes));
  measure.decode_gbps = gigabytes / median(std::move(decodes));
  measure.memcpy_gbps = gigabytes / median(std::move(copies));
  bench.decoded.resize(input.values * dtype_size(input.dtype));
  measure.decoded = std::move(bench.decoded);
  return measure;
}

}  // namespace gradwire::cli
