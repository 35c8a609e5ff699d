// Error feedback over several calls against a plain model, bit for bit: results and what is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gradwire/error_feedback.h"
#include "support/all_reduce_model.h"
#include "support/codec_cases.h"
#include "support/float_model.h"
#include "support/random_collective.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using testing::Bytes;
using testing::read_value;

using Key = std::pair<std::uint32_t, std::uint64_t>;
struct Kept {
  double residual = 0, velocity = 0;
};
using State = std::map<Key, std::vector<Kept>>;  // of one rank, by tensor and first index

// As the library rounds sums and products, which have at most twice a float's digits: rounding a
// double again does not hurt them.
double rounded(DType dtype, double value) {
  return dtype == DType::kFloat64 ? value : static_cast<double>(static_cast<float>(value));
}

// h, v and the residual that counts, of each value of a tensor.
struct Compensated {
  double sum = 0, velocity = 0, residual = 0;
};

// One rank's y for the tensor of `parts`.
Bytes compensated(const Bytes& tensor, DType dtype, const std::vector<PartLayout>& parts,
                  const ErrorFeedbackSettings& settings, State& state,
                  std::vector<Compensated>& found) {
  Bytes sent = tensor;
  std::size_t i = 0;
  for (const PartLayout& part : parts) {
    if (part.values == 0) continue;
    std::vector<Kept>& kept = state[{part.tensor, part.first_index}];
    kept.resize(part.values);
    for (std::uint64_t j = 0; j < part.values; ++j, ++i) {
      const double x = read_value(dtype, tensor.data(), i);
      const auto [e, u] = kept[j];
      found.push_back({x, x, 0});
      const double carried = rounded(dtype, settings.momentum * u);
      if ((e == 0 && carried == 0) || !std::isfinite(x)) continue;
      const double velocity = settings.momentum == 0 ? x : rounded(dtype, carried + x);
      const double sum = rounded(dtype, velocity + e);
      Bytes y(8);
      testing::write_value(dtype, y.data(), 0, sum);
      if (!std::isfinite(read_value(dtype, y.data(), 0))) continue;
      found.back() = {sum, velocity, e};
      std::copy_n(y.data(), dtype_size(dtype), sent.data() + i * dtype_size(dtype));
    }
  }
  return sent;
}

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

// What one rank keeps, from what the owners decode of what it sent.
void keep(const Bytes& decoded, DType dtype, const std::vector<PartLayout>& parts, ShardRange own,
          const ErrorFeedbackSettings& settings, const std::vector<Compensated>& found,
          State& state) {
  const double beta = settings.beta;
  std::size_t i = 0;
  for (const PartLayout& part : parts) {
    if (part.values == 0) continue;
    std::vector<Kept>& kept = state[{part.tensor, part.first_index}];
    for (std::uint64_t j = 0; j < part.values; ++j, ++i) {
      const bool is_own = own.begin <= i && i < own.end;
      const double d = read_value(dtype, decoded.data(), i);
      double rest = rounded(dtype, found[i].sum - d);
      if (beta != 1) {
        rest = rounded(dtype, rounded(dtype, rounded(dtype, 1 - beta) * found[i].residual) +
                                  rounded(dtype, beta * rest));
      }
      kept[j].residual = is_own ? 0 : finite_or_zero(rest);
      const bool is_stale = settings.momentum == 0 || (!is_own && d != 0);
      kept[j].velocity = is_stale ? 0 : finite_or_zero(found[i].velocity);
    }
  }
}

void expect_state(const ErrorFeedback& feedback, const State& expected) {
  const auto found = feedback.residuals();
  ASSERT_EQ(found.size(), expected.size());
  auto wanted = expected.begin();
  for (const ErrorFeedback::Residual& residual : found) {
    ASSERT_EQ(Key(residual.tensor, residual.first_index), wanted->first);
    ASSERT_EQ(residual.values.count, wanted->second.size());
    const auto* values = static_cast<const std::byte*>(residual.values.data);
    const auto* velocities = static_cast<const std::byte*>(residual.velocities.data);
    for (std::size_t i = 0; i < wanted->second.size(); ++i) {
      ASSERT_EQ(read_value(residual.values.dtype, values, i), wanted->second[i].residual) << i;
      if (velocities == nullptr) continue;
      ASSERT_EQ(read_value(residual.values.dtype, velocities, i), wanted->second[i].velocity) << i;
    }
    ++wanted;
  }
}

// Parts of different keys, as error feedback wants them.
void make_unique(std::vector<PartLayout>& parts) {
  for (std::size_t p = 0; p < parts.size(); ++p) parts[p].tensor = static_cast<std::uint32_t>(p);
}

ErrorFeedbackSettings random_settings(std::mt19937_64& random) {
  ErrorFeedbackSettings settings;
  if (random() % 2 == 0) settings.beta = 0.25f + 0.5f * static_cast<float>(random() % 100) / 100;
  if (random() % 2 == 0) settings.momentum = static_cast<float>(random() % 100) / 100;
  return settings;
}

void run_calls(testing::CollectiveCase wanted, int calls, std::mt19937_64& random) {
  const ErrorFeedbackSettings settings = random_settings(random);
  SCOPED_TRACE(wanted.text() + " beta " + std::to_string(settings.beta) + " momentum " +
               std::to_string(settings.momentum));
  const auto world = static_cast<std::size_t>(wanted.world);
  const auto communicators = testing::make_communicators(wanted.world, wanted.group);
  std::vector<ErrorFeedback> feedbacks;
  for (std::size_t r = 0; r < world; ++r) feedbacks.emplace_back(settings);
  std::vector<State> models(world);
  for (int call = 0; call < calls; ++call) {
    // As when DDP fills its buckets anew: another order, so other owners.
    std::shuffle(wanted.parts.begin(), wanted.parts.end(), random);
    std::vector<Bytes> tensors;
    std::vector<Bytes> compensated_tensors;
    std::vector<std::vector<Compensated>> found(world);
    for (std::size_t r = 0; r < world; ++r) {
      tensors.push_back(
          testing::random_tensor(random, wanted.dtype, wanted.values(), wanted.specials));
      compensated_tensors.push_back(
          compensated(tensors[r], wanted.dtype, wanted.parts, settings, models[r], found[r]));
    }
    std::vector<Bytes> sent;
    const Bytes expected =
        testing::model_all_reduce(compensated_tensors, wanted.dtype, wanted.parts, wanted.options,
                                  wanted.group.segment_bytes, &sent);
    testing::run_ranks(wanted.world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      CollectiveOptions options = wanted.options;
      options.error_feedback = &feedbacks[r];
      const Status status = communicators[r]->all_reduce(
          {tensors[r].data(), wanted.values(), wanted.dtype}, wanted.parts, options);
      ASSERT_TRUE(status.ok()) << status.error().to_string();
    });
    for (std::size_t r = 0; r < world; ++r) {
      ASSERT_EQ(testing::first_difference(tensors[r], expected), "same") << "rank " << r;
      keep(sent[r], wanted.dtype, wanted.parts,
           shard_range(wanted.parts, wanted.world, static_cast<int>(r)), settings, found[r],
           models[r]);
      expect_state(feedbacks[r], models[r]);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(ErrorFeedbackProperty, EveryCodecAndType) {
  const std::uint64_t seed = testing::test_seed("ErrorFeedbackProperty.EveryCodecAndType");
  std::mt19937_64 random(seed);
  int world = 0;
  for (const auto& [codec, dtype] : test::floating_cases()) {
    testing::CollectiveCase wanted;
    wanted.world = world++ % 4 + 1;
    wanted.dtype = dtype;
    wanted.parts = {{1009, 0, 0}, {0, 1, 0}, {2777, 2, 0}, {1, 3, 512}};
    wanted.options.codec = test::spec_of(codec);
    wanted.specials = world % 3 == 0;
    run_calls(wanted, 3, random);
    if (HasFailure()) return;
  }
}

TEST(ErrorFeedbackProperty, RandomLayouts) {
  const std::uint64_t seed = testing::test_seed("ErrorFeedbackProperty.RandomLayouts");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    testing::CollectiveCase wanted = testing::random_collective(random);
    make_unique(wanted.parts);
    run_calls(wanted, 4, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gradwire
