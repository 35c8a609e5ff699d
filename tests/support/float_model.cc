#include "support/float_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace gradwire::testing {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  std::size_t bytes() const {
    return static_cast<std::size_t>(1 + exponent_bits + mantissa_bits) / 8;
  }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

Format format_of(DType dtype) {
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

}  // namespace

double read_value(DType dtype, const std::byte* values, std::size_t index) {
  const Format format = format_of(dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, values + index * format.bytes(), format.bytes());
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const int special = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & special;
  const bool negative = (bits >> (format.mantissa_bits + format.exponent_bits)) != 0;
  double value = 0;
  if (exponent == special) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else {
    const std::uint64_t leading = exponent != 0 ? std::uint64_t{1} << format.mantissa_bits : 0;
    value = std::ldexp(static_cast<double>(leading + mantissa),
                       std::max(exponent, 1) - format.bias() - format.mantissa_bits);
  }
  return negative ? -value : value;
}

void write_value(DType dtype, std::byte* values, std::size_t index, double value) {
  const Format format = format_of(dtype);
  const std::uint64_t special = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t infinity = special << format.mantissa_bits;
  std::uint64_t bits = 0;
  if (std::isnan(value)) {
    bits = infinity | std::uint64_t{1} << (format.mantissa_bits - 1);
  } else {
    if (std::isinf(value)) {
      bits = infinity;
    } else if (value != 0) {
      // In units of the last place of the binade; rounding may carry into the next one, and
      // exponent and mantissa as one number carry as well.
      int exponent = 0;
      std::frexp(value, &exponent);
      const int lowest = 1 - format.bias();
      const int binade = std::max(exponent - 1, lowest);
      const double units =
          std::nearbyint(std::ldexp(std::fabs(value), format.mantissa_bits - binade));
      bits = (static_cast<std::uint64_t>(binade - lowest) << format.mantissa_bits) +
             static_cast<std::uint64_t>(units);
      bits = std::min(bits, infinity);
    }
    if (std::signbit(value)) {
      bits |= std::uint64_t{1} << (format.mantissa_bits + format.exponent_bits);
    }
  }
  std::memcpy(values + index * format.bytes(), &bits, format.bytes());
}

}  // namespace gradwire::testing
