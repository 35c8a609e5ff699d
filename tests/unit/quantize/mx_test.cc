#include "quantize/mx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "quantize/group_sums.h"

namespace gradwire::internal {
namespace {

// The value of a code, from the definition of the formats.
double code_value(const MxElement& element, unsigned code) {
  const unsigned magnitude = code & (element.sign() - 1u);
  const auto field = static_cast<int>(magnitude >> element.mantissa_bits);
  const double mantissa = magnitude & ((1u << element.mantissa_bits) - 1);
  const double one = std::ldexp(1.0, static_cast<int>(element.mantissa_bits));
  const double significand = mantissa + (field > 0 ? one : 0);
  const double value = std::ldexp(
      significand, std::max(field, 1) - element.bias - static_cast<int>(element.mantissa_bits));
  return (code & element.sign()) != 0 ? -value : value;
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::uint8_t scale_of(const std::byte* values, std::size_t count, const MxElement& element) {
  return mx_scale(largest_magnitude_ref(values, count), element);
}

const MxElement kElements[] = {kE4M3, kE5M2, kE2M1};

TEST(Mx, LargestValuesAreThoseOfTheStandard) {
  EXPECT_EQ(code_value(kE4M3, kE4M3.largest), 448);
  EXPECT_EQ(code_value(kE5M2, kE5M2.largest), 57344);
  EXPECT_EQ(code_value(kE2M1, kE2M1.largest), 6);
}

TEST(Mx, EveryCodeHasItsValueWithEveryScale) {
  for (const MxElement& element : kElements) {
    for (int scale = 0; scale <= 254 - element.top; ++scale) {
      for (unsigned code = 0; code < 2u * element.sign(); ++code) {
        const auto byte = static_cast<std::uint8_t>(code);
        std::byte value[4];
        const bool good =
            mx_dequantize_ref(&byte, 1, static_cast<std::uint8_t>(scale), element, value);
        ASSERT_EQ(good, (code & (element.sign() - 1u)) <= element.largest) << code;
        if (!good) continue;
        float decoded = 0;
        std::memcpy(&decoded, value, 4);
        ASSERT_EQ(decoded, std::ldexp(code_value(element, code), scale - 127)) << code;
        ASSERT_EQ(std::signbit(decoded), (code & element.sign()) != 0);
      }
    }
  }
}

// Nearest among all codes, ties to the even one, beyond the largest the largest.
unsigned nearest_code(const MxElement& element, double value, double unit) {
  unsigned best = 0;
  for (unsigned code = 0; code <= element.largest; ++code) {
    const double distance = std::abs(code_value(element, code) * unit - std::abs(value));
    const double so_far = std::abs(code_value(element, best) * unit - std::abs(value));
    if (distance < so_far || (distance == so_far && code % 2 == 0)) best = code;
  }
  return std::signbit(value) ? best | element.sign() : best;
}

TEST(Mx, RoundsToNearestEvenAndSaturates) {
  for (const MxElement& element : kElements) {
    for (const double size : {1e-44, 3e-39, 1e-37, 1e-20, 1.0, 1e20, 2e38}) {
      std::vector<float> values(32);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Many magnitudes, among them the middles between codes.
        const double part =
            i % 2 == 0 ? std::exp2(-0.37 * static_cast<double>(i)) : static_cast<double>(i) / 32;
        values[i] = static_cast<float>(size * part * (i % 3 == 0 ? -1 : 1));
      }
      const std::vector<std::byte> bytes = bytes_of(values);
      const std::uint8_t scale = scale_of(bytes.data(), values.size(), element);
      ASSERT_LE(scale, 254 - element.top);
      std::vector<std::uint8_t> codes(values.size());
      mx_quantize_ref(bytes.data(), values.size(), scale, element, codes.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(codes[i], nearest_code(element, values[i], std::ldexp(1.0, scale - 127)))
            << size << " " << values[i];
      }
    }
  }
}

TEST(Mx, EveryMiddleGoesToTheEvenCode) {
  for (const MxElement& element : kElements) {
    for (unsigned code = 0; code < element.largest; ++code) {
      const double middle = (code_value(element, code) + code_value(element, code + 1)) / 2;
      for (const double value :
           {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9)}) {
        const float single = static_cast<float>(value);  // the neighbours may become the middle
        const std::vector<std::byte> bytes = bytes_of({single});
        std::uint8_t rounded = 0;
        mx_quantize_ref(bytes.data(), 1, 127, element, &rounded);
        EXPECT_EQ(rounded, nearest_code(element, single, 1)) << code;
      }
    }
  }
}

TEST(Mx, ScaleOfSpecialGroups) {
  for (const MxElement& element : kElements) {
    EXPECT_EQ(scale_of(bytes_of({0, -0.0f}).data(), 2, element), 0);
    EXPECT_EQ(scale_of(bytes_of({1, INFINITY}).data(), 2, element), kMxRawScale);
    EXPECT_EQ(scale_of(bytes_of({NAN, 1}).data(), 2, element), kMxRawScale);
    EXPECT_EQ(scale_of(bytes_of({1.99f}).data(), 1, element), 127 - element.top);
    EXPECT_EQ(scale_of(bytes_of({1e-44f}).data(), 1, element), 0);
  }
}

}  // namespace
}  // namespace gradwire::internal
