// Stochastic rounding to a step over all float32 patterns, and the mean of many draws.
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "core/counter_rng.h"
#include "core/fp_environment.h"
#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "quantize/stochastic_simd.h"

namespace gradwire::test {
namespace {

using internal::NoisePlace;
using internal::StepGrid;

constexpr auto kCount = static_cast<std::uint32_t>(kChunkValues);
using Patterns = std::array<std::uint32_t, kChunkValues>;

double value_of(std::uint32_t pattern) {
  return static_cast<double>(std::bit_cast<float>(pattern));
}

// Less than a step away and on the grid, or as it was where that is not possible.
std::string violation(StepGrid grid, const Patterns& given, const Patterns& rounded) {
  const double step = std::ldexp(1, grid.k);
  for (std::size_t i = 0; i < kChunkValues; ++i) {
    const double x = value_of(given[i]);
    const double y = value_of(rounded[i]);
    if (!(std::abs(x) < 2048 * step)) {
      if (rounded[i] != given[i]) return finding(given[i], rounded[i], "must stay");
      continue;
    }
    if (!(std::abs(x - y) < step)) return finding(given[i], rounded[i], "a step away or more");
    if (grid.filter && std::abs(x) < step && rounded[i] != 0) {
      return finding(given[i], rounded[i], "not filtered");
    }
    if (rounded[i] != given[i] && y / step != std::trunc(y / step)) {
      return finding(given[i], rounded[i], "not on the grid");
    }
    if (y == 0 && rounded[i] != 0) return finding(given[i], rounded[i], "not +0");
  }
  return {};
}

struct RoundCheck {
  StepGrid grid;
  std::vector<std::string_view> targets = internal::simd_targets();
  Patterns given{}, plain{}, vector{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    float32_chunk(chunk, given);
    const NoisePlace place{internal::mix64(chunk), 2 * chunk};
    internal::round_to_step_ref<internal::Float32Format>(given.data(), kCount, grid, place,
                                                         plain.data());
    std::string text = violation(grid, given, plain);
    for (std::size_t t = 0; t < targets.size() && text.empty(); ++t) {
      internal::use_simd_target(targets[t]);
      internal::round_to_step_float32(given.data(), kCount, grid, place, vector.data());
      if (vector != plain) text = std::string(targets[t]) + ": another value than the plain kernel";
    }
    return text;
  }
};

// Chunk p: 1.6 x 10^6 draws at (p + .37) / 64 of a step. The errors' sum has variance n p (1 - p).
constexpr std::uint32_t kDraws = 400 * kCount;

struct MeanCheck {
  Patterns given{}, rounded{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    const float up = (static_cast<float>(chunk) + 0.37f) / 64;
    given.fill(std::bit_cast<std::uint32_t>(up));
    const std::uint64_t key = internal::noise_key(2026, chunk, 0, 0, 0);
    std::uint64_t ups = 0;
    for (std::uint32_t first = 0; first < kDraws; first += kCount) {
      internal::round_to_step_float32(given.data(), kCount, {0, false}, {key, first},
                                      rounded.data());
      for (const std::uint32_t pattern : rounded) ups += pattern != 0 ? 1 : 0;
    }
    const double p = static_cast<double>(up);
    const double off = static_cast<double>(ups) - p * kDraws;
    if (std::abs(off) <= 4 * std::sqrt(kDraws * p * (1 - p))) return {};
    return "at " + std::to_string(p) + " of a step: " + std::to_string(ups) + " of " +
           std::to_string(kDraws) + " draws went up";
  }
};

}  // namespace

void add_stochastic_cases(std::vector<ExhaustiveCase>* cases) {
  for (const StepGrid grid : {StepGrid{-149, false}, StepGrid{-109, false}, StepGrid{-108, true},
                              StepGrid{-8, false}, StepGrid{112, true}, StepGrid{127, false}}) {
    cases->push_back({.name = "stochastic rounding, k = " + std::to_string(grid.k),
                      .promise = "N1",
                      .chunks = kFloat32Chunks,
                      .patterns = kChunkValues,
                      .all_targets = true,
                      .make_check = [grid] { return ChunkCheck(RoundCheck{.grid = grid}); }});
  }
  cases->push_back({.name = "mean of stochastic rounding",
                    .promise = "N1",
                    .chunks = 64,
                    .patterns = kDraws,
                    .make_check = [] { return ChunkCheck(MeanCheck{}); },
                    .kind = "exhaustive",
                    .unit = "draws"});
}

}  // namespace gradwire::test
