// The four floating types as bit patterns: sign, exponent field, mantissa.
#ifndef GRADWIRE_QUANTIZE_FLOAT_FORMAT_H_
#define GRADWIRE_QUANTIZE_FLOAT_FORMAT_H_

#include <cstdint>

namespace gradwire::internal {

template <typename BitsType, typename WideType, std::uint32_t kExponent, std::uint32_t kMantissa>
struct FloatFormat {
  using Bits = BitsType;  // a value
  using Wide = WideType;  // what its arithmetic is done in: at least 32 bits
  static constexpr std::uint32_t kExponentBits = kExponent;
  static constexpr std::uint32_t kMantissaBits = kMantissa;
  static constexpr std::int32_t kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::int32_t kExponentMax = (1 << kExponent) - 1;  // Inf and NaN
  // Of the least subnormal.
  static constexpr std::int32_t kLeastExponent = 1 - kBias - static_cast<std::int32_t>(kMantissa);
  static constexpr Wide kSign = Wide{1} << (kExponent + kMantissa);
  static constexpr Wide kMagnitude = kSign - 1;
  static constexpr Wide kHidden = Wide{1} << kMantissa;
  static constexpr Wide kMantissaMask = kHidden - 1;
  static constexpr Wide kInfinity = kMagnitude & ~kMantissaMask;
};

using Float32Format = FloatFormat<std::uint32_t, std::uint32_t, 8, 23>;
using Float64Format = FloatFormat<std::uint64_t, std::uint64_t, 11, 52>;
using Float16Format = FloatFormat<std::uint16_t, std::uint32_t, 5, 10>;
using BFloat16Format = FloatFormat<std::uint16_t, std::uint32_t, 8, 7>;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_FLOAT_FORMAT_H_
