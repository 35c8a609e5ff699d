#include "quantize/natural.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/float_bits.h"

namespace gradwire::internal {
namespace {

std::uint16_t code_of(std::uint32_t bits, std::uint16_t noise, std::size_t* raw = nullptr) {
  std::byte value[4];
  std::memcpy(value, &bits, 4);
  std::uint16_t code = 0;
  const std::size_t raw_values = natural_quantize_ref(value, 1, &noise, &code);
  if (raw != nullptr) *raw = raw_values;
  return code;
}

float value_of(std::uint16_t code) {
  std::byte value[4];
  natural_dequantize_ref(&code, 1, value);
  float result = 0;
  std::memcpy(&result, value, 4);
  return result;
}

// How many of the 2^16 noises round the value away from zero.
std::uint32_t ups(std::uint32_t bits) {
  const std::uint32_t lower = (bits >> 23) & 0xFFu;
  std::uint32_t count = 0;
  for (std::uint32_t noise = 0; noise < 65536; ++noise) {
    const std::uint16_t code = code_of(bits, static_cast<std::uint16_t>(noise));
    EXPECT_EQ(code >> 8, bits >> 31);
    EXPECT_TRUE((code & 0xFFu) == lower || (code & 0xFFu) == lower + 1);
    count += (code & 0xFFu) - lower;
  }
  return count;
}

TEST(Natural, RoundsUpWithTheProbabilityOfTheMantissa) {
  for (const std::uint32_t exponent : {0u, 1u, 100u, 127u, 253u}) {
    for (const std::uint32_t mantissa :
         {0u, 63u, 64u, 127u, 128u, 12345u, 0x200000u, 0x400000u, 0x7FFFC0u, 0x7FFFFFu}) {
      const std::uint32_t bits = exponent << 23 | mantissa;
      const double expected = mantissa / 128.0;  // of 65536
      EXPECT_LE(std::abs(ups(bits) - expected), 0.5) << exponent << " " << mantissa;
    }
  }
  EXPECT_EQ(ups(0x80000000u | float32_bits(1.5f)), 32768u);
}

TEST(Natural, PowersOfTwoAndZerosAreExact) {
  for (int exponent = -126; exponent <= 127; ++exponent) {
    for (const float sign : {1.0f, -1.0f}) {
      const float value = std::ldexp(sign, exponent);
      for (const std::uint16_t noise : {0, 1, 32768, 65535}) {
        EXPECT_EQ(value_of(code_of(float32_bits(value), noise)), value);
      }
    }
  }
  EXPECT_EQ(float32_bits(value_of(code_of(0, 65535))), 0u);
  EXPECT_EQ(float32_bits(value_of(code_of(0x80000000u, 65535))), 0x80000000u);
  EXPECT_EQ(value_of(code_of(1, 65535)), 0);  // 2^-149: probability 2^-23, less than noise has
}

TEST(Natural, WhatHasNoUpperNeighbourIsRaw) {
  for (const std::uint32_t bits : {0x7F000001u, 0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u, 0xFF800000u,
                                   0xFFFFFFFFu, 0x7F800001u}) {
    for (const std::uint16_t noise : {0, 65535}) {
      std::size_t raw = 0;
      EXPECT_EQ(code_of(bits, noise, &raw), (bits >> 31) << 8 | kNaturalRaw) << bits;
      EXPECT_EQ(raw, 1u);
    }
  }
  std::size_t raw = 9;
  EXPECT_EQ(code_of(0x7F000000u, 65535, &raw), 254);
  EXPECT_EQ(raw, 0u);
}

TEST(Natural, EveryCodeHasItsValue) {
  for (std::uint16_t code = 0; code < 512; ++code) {
    const std::size_t raw = (code & 0xFF) == 255;
    std::byte value[4];
    EXPECT_EQ(natural_dequantize_ref(&code, 1, value), raw);
    if (raw == 0) {
      EXPECT_EQ(float32_bits(value_of(code)), std::uint32_t{code} << 23);
    }
  }
}

}  // namespace
}  // namespace gradwire::internal
