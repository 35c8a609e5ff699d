#include "support/all_reduce_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "support/float_model.h"

namespace gradwire::testing {
namespace {

// Values [begin, begin + count) of parameter `part`.
struct Run {
  std::size_t part = 0;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

// The segments of shard [begin, end): value by value into the open segment; at its limit it is
// closed at the last place where a cut is allowed.
std::vector<std::vector<Run>> cut(const std::vector<PartLayout>& parts, ShardRange shard,
                                  std::uint64_t limit) {
  std::vector<std::vector<Run>> segments(1);
  std::uint64_t room = limit;
  std::uint64_t flat = 0;
  for (std::size_t p = 0; p < parts.size(); flat += parts[p].values, ++p) {
    const std::uint64_t from = std::max(flat, shard.begin);
    const std::uint64_t to = std::min(flat + parts[p].values, shard.end);
    for (std::uint64_t at = from; at < to;) {
      // The next stretch up to a possible cut.
      const std::uint64_t next = std::min(to, flat + ((at - flat) / 256 + 1) * 256);
      bool joins = !segments.back().empty() && segments.back().back().part == p;
      // A stretch that does not fit opens a segment; so does a parameter beyond the limit.
      if (next - at > room ||
          (!joins && segments.back().size() == Communicator::kMaxSegmentParts)) {
        segments.emplace_back();
        room = limit;
        joins = false;
      }
      if (!joins) segments.back().push_back({p, at - flat, 0});
      segments.back().back().count += next - at;
      room -= next - at;
      at = next;
    }
  }
  return segments;
}

// decode(encode(values of `runs` in `tensor`)), written to the same place of `out`.
void code(const Bytes& tensor, DType dtype, const std::vector<PartLayout>& parts,
          const std::vector<Run>& runs, const CollectiveOptions& options, Phase phase, int sender,
          Bytes& out) {
  const std::size_t size = dtype_size(dtype);
  std::vector<Part> encoded;
  std::vector<TensorView> decoded;
  std::uint64_t count = 0;
  for (const Run& run : runs) {
    std::uint64_t flat = 0;
    for (std::size_t p = 0; p < run.part; ++p) flat += parts[p].values;
    const std::size_t offset = static_cast<std::size_t>(flat + run.begin) * size;
    encoded.push_back({{tensor.data() + offset, run.count, dtype},
                       parts[run.part].tensor,
                       parts[run.part].first_index + run.begin});
    decoded.push_back({out.data() + offset, run.count, dtype});
    count += run.count;
  }
  EncodeOptions encode_options;
  encode_options.context.phase = phase;
  encode_options.context.sender = static_cast<std::uint32_t>(sender);
  encode_options.context.step = options.step;
  Workspace workspace;
  Bytes frame(max_encoded_size(options.codec, dtype, count, encoded.size()));
  const Result<std::size_t> length =
      encode(options.codec, encoded, encode_options, frame, workspace);
  ASSERT_TRUE(length.ok()) << length.error().to_string();
  const Status status = decode(std::span(frame).first(*length), decoded, workspace);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
}

// y of one segment: the rank-ordered sum, scaled and rounded.
template <typename Sum>
void reduce(const std::vector<Bytes>& contributions, DType dtype, std::uint64_t first,
            std::uint64_t count, bool average, Bytes& out) {
  const auto world = contributions.size();
  for (std::uint64_t i = first; i < first + count; ++i) {
    auto sum = static_cast<Sum>(read_value(dtype, contributions[0].data(), i));
    for (std::size_t r = 1; r < world; ++r) {
      sum = sum + static_cast<Sum>(read_value(dtype, contributions[r].data(), i));
    }
    if (average) sum *= Sum{1} / static_cast<Sum>(world);
    write_value(dtype, out.data(), i, sum);
  }
}

}  // namespace

Bytes model_all_reduce(const std::vector<Bytes>& tensors, DType dtype,
                       const std::vector<PartLayout>& parts, const CollectiveOptions& options,
                       std::uint32_t segment_bytes, std::vector<Bytes>* sent) {
  if (sent != nullptr) *sent = tensors;
  const int world = static_cast<int>(tensors.size());
  const std::uint64_t limit = segment_bytes / dtype_size(dtype) / 256 * 256;
  const bool average = options.reduction == Reduction::kAvg;
  Bytes result(tensors[0].size());
  for (int owner = 0; owner < world; ++owner) {
    const ShardRange shard = shard_range(parts, world, owner);
    std::uint64_t first = shard.begin;
    for (const std::vector<Run>& runs : cut(parts, shard, limit)) {
      std::vector<Bytes> contributions = tensors;  // the owner's own stays as it is
      for (int rank = 0; rank < world; ++rank) {
        if (rank == owner) continue;
        const auto r = static_cast<std::size_t>(rank);
        code(tensors[r], dtype, parts, runs, options, Phase::kContribution, rank, contributions[r]);
        if (sent == nullptr) continue;
        code(tensors[r], dtype, parts, runs, options, Phase::kContribution, rank, (*sent)[r]);
      }
      std::uint64_t count = 0;
      for (const Run& run : runs) count += run.count;
      Bytes rounded(result.size());
      if (dtype == DType::kFloat64) {
        reduce<double>(contributions, dtype, first, count, average, rounded);
      } else {
        reduce<float>(contributions, dtype, first, count, average, rounded);
      }
      code(rounded, dtype, parts, runs, options, Phase::kResult, owner, result);
      first += count;
    }
  }
  return result;
}

Bytes random_tensor(std::mt19937_64& random, DType dtype, std::size_t count, bool specials) {
  std::normal_distribution<double> normal(0.0, 1e-3);
  Bytes tensor(count * dtype_size(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    double value = normal(random);
    if (specials) {
      switch (random() % 64) {
        case 0:
          value = 0.0;
          break;
        case 1:
          value = -0.0;
          break;
        case 2:
          value = std::numeric_limits<double>::quiet_NaN();
          break;
        case 3:
          value = (random() & 1) != 0 ? INFINITY : -INFINITY;
          break;
        case 4:
          value = std::ldexp(value, -static_cast<int>(random() % 140));
          break;
        case 5:
          value = std::ldexp(value, static_cast<int>(random() % 140));
          break;
        default:
          break;
      }
    }
    write_value(dtype, tensor.data(), i, value);
  }
  return tensor;
}

std::uint64_t test_seed(const std::string& test) {
  std::uint64_t seed = 0;
  if (const char* text = std::getenv("GRADWIRE_TEST_SEED"); text != nullptr) {
    seed = std::strtoull(text, nullptr, 10);
  } else {
    seed = std::random_device{}() % 1000000007u;
  }
  std::printf("%s: seed %llu (set GRADWIRE_TEST_SEED to repeat)\n", test.c_str(),
              static_cast<unsigned long long>(seed));
  return seed;
}

std::string first_difference(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return "sizes differ";
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin());
  if (at == a.end()) return "same";
  return "byte " + std::to_string(at - a.begin());
}

}  // namespace gradwire::testing
