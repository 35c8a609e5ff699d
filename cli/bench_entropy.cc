// Order-0 limits of what the codecs have to code, from original and decoded values.
//
// One table for the file, tables themselves not counted:
//   step form   integers q = x'/2^k (sign included); scales k
//   mantissa    exponent field of x' below the group's T, zero as a symbol; 1 + M raw bits; T
//   lossless    as mantissa, M bits per block = what the block's common trailing zeros leave
//   block       integers q = x'/d; scales as bfloat16
// A group of zeros is a symbol among the scales, its values are not counted again. Values that
// have to be escaped are a symbol and all their bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "bench_values.h"

namespace gradwire::cli {
namespace {

class Histogram {
 public:
  void add(int symbol) { ++counts_[symbol]; }
  // Bits that all symbols together need.
  double bits() const {
    double total = 0;
    for (const auto& [symbol, count] : counts_) total += count;
    double bits = 0;
    for (const auto& [symbol, count] : counts_) bits += count * std::log2(total / count);
    return bits;
  }

 private:
  std::map<int, double> counts_;
};

constexpr int kZeroGroup = -100000;
constexpr int kNoFinite = -100001;
constexpr int kZero = 30;
constexpr int kEscape = 5000;

struct Counted {
  Histogram symbols;
  Histogram scales;
  double raw_bits = 0;
  double per_value(std::uint64_t values) const {
    return (symbols.bits() + scales.bits() + raw_bits) / static_cast<double>(values);
  }
};

int type_bits(const FloatFormat& format) { return 1 + format.exponent_bits + format.mantissa_bits; }

// A group that stochastic rounding leaves nothing of is a zero group too.
void count_step(const Values& original, const Values& decoded, const Group& group,
                StepExponents& exponents, Counted& counted) {
  if (is_zero_group(original, group, /*signs=*/false) ||
      is_zero_group(decoded, group, /*signs=*/false)) {
    return counted.scales.add(kZeroGroup);
  }
  const int k = exponents.of(group);
  counted.scales.add(k);
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const double q = std::ldexp(decoded[i], -k);
    const bool escaped = !std::isfinite(q) || std::fabs(q) > 2047 || q != std::trunc(q);
    counted.symbols.add(escaped ? kEscape : static_cast<int>(q));
    if (escaped) counted.raw_bits += type_bits(original.format());
  }
}

// Escapes subnormals only where the codec rounds them: `lossless` codes them as they are.
void count_exponents(const Values& original, const Values& decoded, const Group& group,
                     int mantissa, bool lossless, Counted& counted) {
  if (is_zero_group(original, group, lossless)) return counted.scales.add(kZeroGroup);
  const FloatFormat& format = original.format();
  const GroupScale scale = group_scale(original, group, 1, 1 - format.bias());
  const int k = scale.exponent.value_or(0);
  const int top =
      scale.exponent ? std::min(std::max(k + format.bias() + 4, 0), format.max_exponent()) : 0;
  counted.scales.add(scale.any_finite ? top : kNoFinite);
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    const std::uint64_t bits = decoded.bits(i);
    if (format.zero(bits)) {
      counted.symbols.add(kZero);
      counted.raw_bits += lossless ? 1 : 0;
      continue;
    }
    const int token = top - format.exponent(bits);
    const bool subnormal = format.exponent(bits) == 0;
    const bool escaped =
        !format.finite(bits) || token < 0 || token >= kZero || (subnormal && !lossless);
    counted.symbols.add(escaped ? kEscape : token);
    counted.raw_bits += escaped ? type_bits(format) : 1 + mantissa;
  }
}

void count_block(const Values& original, const Values& decoded, const Group& group, int bits,
                 Counted& counted) {
  const BlockScale scale = block_scale(original, group, bits);
  counted.scales.add(scale.raw ? kNoFinite : scale.bits);
  if (scale.raw) counted.raw_bits += 32 * static_cast<double>(group.count);
  if (scale.raw || scale.step == 0) return;
  for (std::uint64_t i = group.begin; i < group.begin + group.count; ++i) {
    counted.symbols.add(static_cast<int>(std::lround(decoded[i] / scale.step)));
  }
}

// Mantissa bits that the finite values of each block leave to `lossless`.
std::vector<int> kept_mantissa(const Values& values, std::uint64_t count,
                               std::uint64_t block_values) {
  const FloatFormat& format = values.format();
  std::vector<int> kept;
  for (std::uint64_t begin = 0; begin < count; begin += block_values) {
    std::uint64_t all = 0;
    for (std::uint64_t i = begin; i < std::min(begin + block_values, count); ++i) {
      if (format.finite(values.bits(i))) all |= format.mantissa(values.bits(i));
    }
    kept.push_back(all == 0 ? 0 : format.mantissa_bits - std::countr_zero(all));
  }
  return kept;
}

}  // namespace

std::optional<double> entropy_bits(const BenchInput& input, std::span<const std::byte> decoded,
                                   const CodecSpec& codec) {
  const bool baseline = codec.id >= CodecId::kNatural;
  if (input.values == 0 || baseline || codec.id == CodecId::kNone || codec.id == CodecId::kCast) {
    return std::nullopt;
  }
  const Values original(input.data.data(), input.dtype);
  const Values result(decoded.data(), input.dtype);
  const bool lossless = codec.id == CodecId::kLossless;
  std::vector<int> kept;
  if (lossless) kept = kept_mantissa(original, input.values, codec.block_values);
  StepExponents exponents(original, codec);
  Counted counted;
  for (const Group& group : cut_groups(input, codec)) {
    if (codec.id == CodecId::kBlock) {
      count_block(original, result, group, codec.bits, counted);
    } else if (is_step_form(codec)) {
      count_step(original, result, group, exponents, counted);
    } else {
      const int mantissa = lossless
                               ? kept[group.block]
                               : std::min<int>(codec.mantissa, original.format().mantissa_bits);
      count_exponents(original, result, group, mantissa, lossless, counted);
    }
  }
  return counted.per_value(input.values);
}

std::optional<double> reference_ratio(const BenchInput& input) {
  if (input.values == 0) return std::nullopt;
  constexpr std::uint64_t kTableValues = 65536;
  const Values values(input.data.data(), input.dtype);
  const FloatFormat& format = values.format();
  double exponent_bits = 0;
  for (std::uint64_t begin = 0; begin < input.values; begin += kTableValues) {
    Histogram exponents;
    for (std::uint64_t i = begin; i < std::min(begin + kTableValues, input.values); ++i) {
      exponents.add(format.exponent(values.bits(i)));
    }
    exponent_bits += exponents.bits();
  }
  const double coded = exponent_bits / static_cast<double>(input.values) + 1 + format.mantissa_bits;
  return static_cast<double>(8 * dtype_size(input.dtype)) / coded;
}

}  // namespace gradwire::cli
