#include "bench_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace gradwire::cli {

double FloatFormat::value(std::uint64_t bits) const {
  const int e = exponent(bits);
  const double m = static_cast<double>(mantissa(bits));
  double magnitude = 0;
  if (e == max_exponent()) {
    magnitude = mantissa(bits) == 0 ? INFINITY : NAN;
  } else {
    const double implicit = e == 0 ? 0 : std::ldexp(1.0, mantissa_bits);
    magnitude = std::ldexp(m + implicit, std::max(e, 1) - bias() - mantissa_bits);
  }
  return negative(bits) ? -magnitude : magnitude;
}

FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {11, 52};
    case DType::kFloat16:
      return {5, 10};
    case DType::kBFloat16:
      return {8, 7};
    default:
      return {8, 23};
  }
}

std::uint64_t Values::bits(std::uint64_t i) const {
  std::uint64_t bits = 0;
  for (std::size_t b = size_; b-- > 0;) {
    bits = bits << 8 | static_cast<std::uint64_t>(data_[i * size_ + b]);
  }
  return bits;
}

std::vector<Group> cut_groups(const BenchInput& input, const CodecSpec& codec) {
  std::vector<Group> groups;
  std::uint64_t begin = 0;
  for (const std::uint64_t count : input.counts) {
    const std::uint64_t end = begin + count;
    while (begin < end) {
      const std::uint64_t block = begin / codec.block_values;
      const std::uint64_t piece_end = std::min(end, (block + 1) * codec.block_values);
      for (; begin < piece_end; begin = std::min(begin + codec.group, piece_end)) {
        groups.push_back({begin, std::min<std::uint64_t>(codec.group, piece_end - begin), block,
                          end - count, count});
      }
    }
  }
  return groups;
}

GroupScale group_scale(const Values& values, const Group& group, double x, int least) {
  GroupScale scale;
  double most = 0;
  std::uint64_t finite = 0;
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const double magnitude = std::fabs(values[i]);
    if (!std::isfinite(magnitude)) continue;
    most = std::max(most, magnitude);
    ++finite;
  }
  scale.any_finite = finite > 0;
  if (most == 0) return scale;
  const int largest = std::max(std::ilogb(most), least);  // A - bias
  std::uint64_t sum = 0;                                  // S
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const double magnitude = std::fabs(values[i]);
    if (!std::isfinite(magnitude)) continue;
    // floor(g 2^10 / 2^B / 2^(A - F)), by value.
    const auto s = static_cast<std::uint64_t>(std::ldexp(magnitude, 10 - largest));
    sum += s * s;
  }
  const auto x2 = static_cast<std::uint64_t>(std::floor(std::ldexp(x * x, 28)));
  const std::uint64_t y = ((sum << 8) / finite) * x2;
  if (y == 0) return scale;
  const int j = (static_cast<int>(std::bit_width(y)) - 1 - 36) >> 1;  // arithmetic: floor
  scale.exponent = j + largest - 10;
  return scale;
}

bool is_zero_group(const Values& values, const Group& group, bool signs) {
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const std::uint64_t bits = values.bits(i);
    if (signs ? bits != 0 : !values.format().zero(bits)) return false;
  }
  return true;
}

bool is_step_form(const CodecSpec& codec) {
  return codec.id == CodecId::kErrorBounded || codec.step > 0;
}

std::optional<int> StepExponents::scale_exponent(const Group& group) const {
  const bool nearest = codec_.rounding == Rounding::kNearest;
  const bool bounded = codec_.id == CodecId::kErrorBounded;
  const double x = !bounded ? codec_.step : nearest ? 2 * codec_.bound : codec_.bound;
  if (!bounded || codec_.scale == BoundScale::kRms) {
    // Halves count as float32.
    const int normal = std::min(1 - values_.format().bias(), -126);
    return group_scale(values_, group, x, normal).exponent;
  }
  long double lowest = INFINITY;
  long double highest = -INFINITY;
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const long double value = values_[i];
    if (!std::isfinite(value)) continue;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  if (lowest > highest) return std::nullopt;
  // A long double has 64 bits: exact where the smaller of the two has 2^-40 of the larger or more.
  const long double scale = codec_.scale == BoundScale::kRange    ? highest - lowest
                            : codec_.scale == BoundScale::kAbsMax ? std::max(-lowest, highest)
                                                                  : 1.0L;
  if (scale == 0) return std::nullopt;
  return std::ilogb(static_cast<long double>(x) * scale);
}

int StepExponents::of(const Group& group) {
  std::optional<int> exponent;
  if (!has_option(codec_.options, BoundOptions::kPerPart)) {
    exponent = scale_exponent(group);
  } else {
    if (known_part_ != group.part_begin) {
      known_part_ = group.part_begin;
      part_exponent_ = scale_exponent({group.part_begin, group.part_count});
    }
    exponent = part_exponent_;
  }
  const FloatFormat& format = values_.format();
  const int least = 1 - format.bias() - format.mantissa_bits;
  return std::clamp(exponent.value_or(least), least, format.bias());
}

BlockScale block_scale(const Values& values, const Group& group, int bits) {
  float largest = 0;
  BlockScale scale;
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const auto value = static_cast<float>(values[i]);
    if (!std::isfinite(value)) scale.raw = true;
    largest = std::max(largest, std::fabs(value));
  }
  if (scale.raw) return scale;
  // Up to the next bfloat16: any dropped bit carries.
  const std::uint32_t rounded = (std::bit_cast<std::uint32_t>(largest) + 0xffffu) & 0xffff0000u;
  const auto s = std::bit_cast<float>(rounded);
  scale.raw = !std::isfinite(s) || (s > 0 && s < std::ldexp(1.0F, -110));
  scale.bits = static_cast<std::uint16_t>(rounded >> 16);
  if (!scale.raw) scale.step = s / static_cast<float>((1 << (bits - 1)) - 1);
  return scale;
}

}  // namespace gradwire::cli
