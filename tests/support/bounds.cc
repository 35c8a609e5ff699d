#include "support/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frame/limits.h"

namespace gradwire::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Values [begin, end) of a parameter: one group.
struct Group {
  const Tensor& given;
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool has_nonfinite(const Group& group) {
  for (std::size_t i = group.begin; i < group.end; ++i) {
    if (!std::isfinite(group.given.value(i))) return true;
  }
  return false;
}

int bias_of(const FloatLayout& layout) { return (1 << (layout.exponent - 1)) - 1; }

// The scale of near_lossless and error_bounded: RMS, range or largest magnitude of the finite
// values. Squares of float64 leave binary64.
long double scale_of(const Group& group, BoundScale scale) {
  long double squares = 0;
  long double finite = 0;
  long double lowest = kInfinity;
  long double highest = -kInfinity;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const double value = group.given.value(i);
    if (!std::isfinite(value)) continue;
    squares += static_cast<long double>(value) * value;
    finite += 1;
    lowest = std::min<long double>(lowest, value);
    highest = std::max<long double>(highest, value);
  }
  if (finite == 0) return 0;
  switch (scale) {
    case BoundScale::kRange:
      return highest - lowest;
    case BoundScale::kAbsMax:
      return std::max(-lowest, highest);
    case BoundScale::kAbsolute:
      return 1;
    default:
      return std::sqrt(squares / finite);
  }
}

// The largest error of the step form: 2^floor(log2(X scale)), within the exponents that the type
// has; half of it for `nearest`. The encoder's scale is cut, never above this one; 1e-12 covers the
// rounding here.
double step_bound(const Group& group, const CodecSpec& spec) {
  const bool nearest = spec.rounding == Rounding::kNearest;
  const bool bounded = spec.id == CodecId::kErrorBounded;
  const long double x = !bounded ? spec.step : nearest ? 2 * spec.bound : spec.bound;
  const long double scale = scale_of(group, bounded ? spec.scale : BoundScale::kRms);
  if (scale == 0) return 0;  // every value is on the finest grid, or an outlier
  const int exponent = std::ilogb(x * scale * (1 + 1e-12L));
  const FloatLayout layout = float_layout(group.given.dtype);
  const int bias = bias_of(layout);
  const int least = 1 - bias - static_cast<int>(layout.mantissa);
  // At the least exponent every value is on the grid.
  return exponent <= least ? 0 : std::ldexp(nearest ? 0.5 : 1, std::min(exponent, bias));
}

// block: the scale is the largest magnitude, rounded up to bfloat16; 0 for groups that are kept.
double block_step(const Group& group, const CodecSpec& spec) {
  if (has_nonfinite(group)) return 0;
  double largest = 0;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    largest = std::max(largest, std::abs(group.given.value(i)));
  }
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(largest), -126) - 7);
  const double scale = std::ceil(largest / unit) * unit;
  if (scale < 0x1p-110 || scale >= 0x1p128) return 0;
  return scale / ((1 << (spec.bits - 1)) - 1);
}

// Half a unit in the last place of the type.
double half_unit(double value, DType dtype) {
  const FloatLayout layout = float_layout(dtype);
  const int bias = bias_of(layout);
  const int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  return std::ldexp(0.5, std::min(exponent, bias) - static_cast<int>(layout.mantissa));
}

// cast: half a unit in the last place; what rounds beyond the type's range becomes Inf.
double cast_bound(double value, DType dtype) {
  const FloatLayout layout = float_layout(dtype);
  const double most =
      std::ldexp(2 - std::ldexp(0.5, -static_cast<int>(layout.mantissa)), bias_of(layout));
  return std::abs(value) >= most ? kInfinity : half_unit(value, dtype);
}

// block: halves are rounded once more; but never past twice the error, for x is of the type.
double block_bound(double value, DType dtype, double error) {
  if (dtype_size(dtype) > 2) return error;
  return std::min(error + half_unit(std::abs(value) + error, dtype), 2 * error);
}

// Sums and largest of the magnitudes.
struct Magnitudes {
  double sum = 0;
  double squares = 0;
  double largest = 0;
};

Magnitudes magnitudes_of(const Group& group) {
  Magnitudes magnitudes;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const double magnitude = std::abs(group.given.value(i));
    magnitudes.sum += magnitude;
    magnitudes.squares += magnitude * magnitude;
    magnitudes.largest = std::max(magnitudes.largest, magnitude);
  }
  return magnitudes;
}

// Codecs 16 and up: the part of a value's bound that its group decides. A group with a value that
// is not finite is kept.
double baseline_step(const Group& group, const CodecSpec& spec) {
  if (has_nonfinite(group)) return 0;
  const Magnitudes magnitudes = magnitudes_of(group);
  switch (spec.id) {
    case CodecId::kMxfp8:  // half the least subnormal: 2^-10 (E5M2: 2^-17) of a scale
      return std::max(std::ldexp(magnitudes.largest, -18), 0x1p-137);
    case CodecId::kMxfp4:
      return std::max(std::ldexp(magnitudes.largest, -4), 0x1p-129);
    case CodecId::kQsgd: {  // both norms are rounded up by less than 2^-8
      const double norm =
          spec.variant == internal::kQsgdMax ? magnitudes.largest : std::sqrt(magnitudes.squares);
      return norm / ((1 << (spec.bits - 1)) - 1) * (1 + 0x1p-8);
    }
    case CodecId::kTernGrad:
    case CodecId::kSign:
      return magnitudes.largest * (1 + 0x1p-10);
    case CodecId::kHadamard:
      return magnitudes.sum / ((1 << (spec.bits - 1)) - 1) * (1 + 0x1p-6);
    default:
      return 0;
  }
}

double bound_of(const CodecSpec& spec, DType dtype, double value, double group_step) {
  switch (spec.id) {
    case CodecId::kErrorBounded:
      return group_step;
    case CodecId::kNearLossless:
      if (spec.mantissa == 0) return group_step;
      if (spec.mantissa >= float_layout(dtype).mantissa) return 0;
      return std::ldexp(std::abs(value),
                        -(spec.mantissa + (spec.rounding == Rounding::kNearest ? 1 : 0)));
    case CodecId::kBlock:
      return block_bound(
          value, dtype,
          group_step * (spec.rounding == Rounding::kNearest ? 0.5 : 1.0) * (1 + 0x1p-10));
    case CodecId::kCast:
      return cast_bound(value, spec.cast_dtype);
    case CodecId::kNatural:
      return std::max(std::abs(value), value == 0 ? 0 : 0x1p-126);
    case CodecId::kMxfp8:
      return group_step + std::abs(value) / 8;
    case CodecId::kMxfp4:
      return group_step + std::abs(value) / 4;
    case CodecId::kQsgd:
    case CodecId::kTernGrad:
    case CodecId::kSign:
    case CodecId::kHadamard:
      return group_step;
    case CodecId::kTopK:
      return std::abs(value);
    case CodecId::kCocktail:  // kept values of all parameters of a block share scales
      return std::numeric_limits<double>::max();
    default:
      return 0;
  }
}

std::string violation(const char* what, std::size_t index, double given, double decoded,
                      double bound) {
  char text[200];
  std::snprintf(text, sizeof(text), "value %zu: %s: given %.17g (%a), decoded %.17g, bound %g",
                index, what, given, given, decoded, bound);
  return text;
}

// Whether an error as large as the bound is beyond it.
bool is_strict(const CodecSpec& spec) {
  return spec.rounding == Rounding::kStochastic &&
         (spec.id == CodecId::kErrorBounded || spec.id == CodecId::kNearLossless);
}

// `scaled`: the values that share the group's scale.
std::string group_violation(const CodecSpec& spec, const Group& group, const Group& scaled,
                            const Tensor& decoded) {
  double step = 0;
  if (spec.id == CodecId::kBlock) step = block_step(group, spec);
  const bool near_lossless = spec.id == CodecId::kNearLossless && spec.mantissa == 0;
  if (spec.id == CodecId::kErrorBounded || near_lossless) step = step_bound(scaled, spec);
  if (spec.id >= CodecId::kNatural) step = baseline_step(group, spec);
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const double x = group.given.value(i);
    const double y = decoded.value(i);
    if (std::isnan(x)) {
      if (!std::isnan(y)) return violation("was NaN", i, x, y, 0);
      continue;
    }
    if (std::isinf(x)) {
      if (y != x) return violation("was Inf", i, x, y, 0);
      continue;
    }
    const double bound = bound_of(spec, group.given.dtype, x, step);
    if (bound == kInfinity) {
      if (!std::isinf(y) || std::signbit(x) != std::signbit(y)) {
        return violation("must overflow", i, x, y, bound);
      }
    } else if (!(std::abs(x - y) <= bound) ||
               (is_strict(spec) && x != y && std::abs(x - y) == bound)) {
      return violation("beyond the bound", i, x, y, bound);
    }
  }
  return {};
}

bool is_exact(CodecId codec) { return codec == CodecId::kNone || codec == CodecId::kLossless; }

std::string bits_violation(const Tensor& given, const Tensor& decoded) {
  for (std::size_t i = 0; i < given.count; ++i) {
    if (given.bits(i) != decoded.bits(i)) {
      return "value " + std::to_string(i) + ": bits " + std::to_string(given.bits(i)) + " became " +
             std::to_string(decoded.bits(i));
    }
  }
  return {};
}

}  // namespace

std::string bound_violation(const CodecSpec& spec, const Tensor& given, const Tensor& decoded,
                            std::uint64_t offset) {
  if (given.count != decoded.count) return "the counts differ";
  if (is_exact(spec.id)) return bits_violation(given, decoded);
  std::uint64_t piece = 0;
  while (piece < given.count) {
    const std::uint64_t to_border = spec.block_values - (offset + piece) % spec.block_values;
    const std::uint64_t piece_end = std::min(given.count, piece + to_border);
    const std::uint64_t size = spec.group != 0 ? spec.group : piece_end - piece;
    for (std::uint64_t begin = piece; begin < piece_end; begin += size) {
      const Group group{given, begin, std::min(begin + size, piece_end)};
      const Group part{given, 0, given.count};
      const bool per_part = has_option(spec.options, BoundOptions::kPerPart);
      std::string text = group_violation(spec, group, per_part ? part : group, decoded);
      if (!text.empty()) return text;
    }
    piece = piece_end;
  }
  return {};
}

}  // namespace gradwire::test
