// Error of decoded values, and how near it comes to the bound that the codec states.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench_values.h"

namespace gradwire::cli {
namespace {

// long double: squares of float64 gradients overflow a double.
struct Sums {
  long double error = 0;
  long double value = 0;

  void add(const Sums& other) {
    error += other.error;
    value += other.value;
  }
  double relative() const {
    if (error == 0) return 0;
    return value == 0 ? std::numeric_limits<double>::max()
                      : static_cast<double>(std::sqrt(error / value));
  }
};

// Sums over the values that are finite before and after.
Sums sums_of(const Values& original, const Values& decoded, std::uint64_t begin,
             std::uint64_t count) {
  Sums sums;
  for (std::uint64_t i = begin; i < begin + count; ++i) {
    const long double x = original[i];
    const long double error = decoded[i] - x;
    if (!std::isfinite(error)) continue;
    sums.error += error * error;
    sums.value += x * x;
  }
  return sums;
}

// |x - x'| / bound; the largest double where a value that must be exact is not.
double over_bound(std::uint64_t x_bits, std::uint64_t y_bits, const FloatFormat& format,
                  double bound) {
  const double x = format.value(x_bits);
  const double y = format.value(y_bits);
  if (x_bits == y_bits || (std::isnan(x) && std::isnan(y)) || x == y) return 0;
  const double error = std::fabs(x - y);
  if (!(bound > 0) || !std::isfinite(error)) return std::numeric_limits<double>::max();
  return error / bound;
}

// The bound of each value of a group is `fixed` + `relative` x |x|.
struct Bound {
  double fixed = 0;
  double relative = 0;
};

Bound bound_of(const Values& original, const Group& group, const CodecSpec& codec,
               StepExponents& exponents) {
  const double half = codec.rounding == Rounding::kNearest ? 0.5 : 1;
  if (codec.id == CodecId::kBlock) {
    const BlockScale scale = block_scale(original, group, codec.bits);
    return {.fixed = half * scale.step * (1 + std::ldexp(1, -10))};
  }
  const bool keeps_all = codec.mantissa >= original.format().mantissa_bits;
  if (codec.mantissa > 0) return {.relative = keeps_all ? 0 : std::ldexp(half, -codec.mantissa)};
  if (is_zero_group(original, group, /*signs=*/false)) return {};
  return {.fixed = half * std::ldexp(1, exponents.of(group))};
}

double exact_error(const Values& original, const Values& decoded, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (original.bits(i) != decoded.bits(i)) return std::numeric_limits<double>::max();
  }
  return 0;
}

std::optional<double> max_over_bound(const BenchInput& input, const Values& original,
                                     const Values& decoded, const CodecSpec& codec) {
  // The baselines state a bound of their own each, or none.
  const bool baseline = codec.id >= CodecId::kNatural;
  if (baseline || codec.id == CodecId::kNone || codec.id == CodecId::kCast) return std::nullopt;
  if (codec.id == CodecId::kLossless) return exact_error(original, decoded, input.values);
  double worst = 0;
  StepExponents exponents(original, codec);
  for (const Group& group : cut_groups(input, codec)) {
    const Bound bound = bound_of(original, group, codec, exponents);
    for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
      const double limit = bound.fixed + bound.relative * std::fabs(original[i]);
      worst =
          std::max(worst, over_bound(original.bits(i), decoded.bits(i), original.format(), limit));
    }
  }
  return worst;
}

}  // namespace

BenchError error_of(const BenchInput& input, std::span<const std::byte> decoded,
                    const CodecSpec& codec) {
  constexpr std::uint64_t kSmallTensor = 1024;
  const Values original(input.data.data(), input.dtype);
  const Values result(decoded.data(), input.dtype);
  BenchError error;
  Sums total;
  std::uint64_t begin = 0;
  for (const std::uint64_t count : input.counts) {
    const Sums sums = sums_of(original, result, begin, count);
    total.add(sums);
    if (count >= kSmallTensor) {
      error.worst_tensor_rel_l2 = std::max(error.worst_tensor_rel_l2.value_or(0), sums.relative());
    }
    begin += count;
  }
  error.rel_l2 = total.relative();
  error.max_error_over_bound = max_over_bound(input, original, result, codec);
  return error;
}

}  // namespace gradwire::cli
