#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/codec_cases.h"
#include "support/frame_edit.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::Tensor;

std::uint16_t narrowed(const Tensor& tensor, std::size_t index, bool half) {
  const std::uint32_t single =
      tensor.dtype == DType::kFloat64
          ? internal::float32_bits_from_float64_to_odd(tensor.get<std::uint64_t>(index))
          : tensor.get<std::uint32_t>(index);
  return half ? internal::float16_from_float32_bits(single)
              : internal::bfloat16_from_float32_bits(single);
}

TEST(Cast, BlocksHoldTheNarrowValuesInOrder) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const bool half : {false, true}) {
      const CodecSpec spec = test::spec_of(half ? "cast:dtype=fp16" : "cast:dtype=bf16");
      const std::vector<Tensor> tensors = {test::random_bits(dtype, 1001, 1),
                                           test::special_values(dtype),
                                           test::gradient_like(dtype, 500, 2)};
      const Bytes frame = test::encode_tensors(spec, tensors);
      std::size_t at = 128 + 3 * 8 + 32;
      ASSERT_EQ(frame.size(), at + 2 * (1001 + 500 + tensors[1].count));
      for (const Tensor& tensor : tensors) {
        for (std::size_t i = 0; i < tensor.count; ++i, at += 2) {
          ASSERT_EQ(internal::load_le<std::uint16_t>(frame.data() + at), narrowed(tensor, i, half));
        }
      }
    }
  }
}

// 2^-8 |x| for bfloat16, 2^-11 |x| for float16 in the normal range, half the least step below it.
TEST(Cast, EveryValueObeysTheBound) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const bool half : {false, true}) {
      const CodecSpec spec = test::spec_of(half ? "cast:dtype=fp16" : "cast:dtype=bf16");
      const double relative = half ? 0x1p-11 : 0x1p-8;
      const double least = half ? 0x1p-24 : 0x1p-133;
      const double most = half ? 65504 : 0x1.FEp127;
      for (const double sigma : {1.0, 1e-6, 1e4, 1e-38, 1e38}) {
        const Tensor tensor = test::gradient_like(dtype, 5000, 3, sigma);
        const Tensor back = test::round_trip(spec, {tensor})[0];
        for (std::size_t i = 0; i < tensor.count; ++i) {
          const double value = tensor.value(i);
          const double bound = std::max(relative * std::abs(value), least / 2);
          if (std::abs(value) <= most) {
            const double error = std::abs(back.value(i) - value);
            ASSERT_FALSE(!(error <= bound)) << value << " became " << back.value(i);
          } else {
            ASSERT_TRUE(std::isinf(back.value(i)) || std::abs(back.value(i)) == most) << value;
            ASSERT_EQ(std::signbit(back.value(i)), std::signbit(value));
          }
        }
      }
    }
  }
}

TEST(Cast, SignsOfZeroAndNanSurvive) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const char* text : {"cast:dtype=fp16", "cast:dtype=bf16"}) {
      const Tensor special = test::special_values(dtype);
      const Tensor back = test::round_trip(test::spec_of(text), {special})[0];
      for (std::size_t i = 0; i < special.count; ++i) {
        EXPECT_EQ(std::signbit(back.value(i)), std::signbit(special.value(i))) << i;
      }
    }
  }
}

TEST(Cast, DecodesAnyPatternExactly) {
  // All 65536 patterns, signalling NaNs too, as only a foreign encoder would write them.
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const bool half : {false, true}) {
      const CodecSpec spec = test::spec_of(half ? "cast:dtype=fp16" : "cast:dtype=bf16");
      Bytes frame = test::encode_tensors(spec, {Tensor(dtype, 65536)});
      for (std::uint32_t i = 0; i < 65536; ++i) {
        internal::store_le(frame.data() + 168 + 2 * i, static_cast<std::uint16_t>(i));
      }
      test::fix_checksums(frame);
      std::vector<Tensor> decoded = {Tensor(dtype, 65536)};
      ASSERT_TRUE(test::decode_into(frame, &decoded).ok());
      for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        const std::uint32_t single = half ? internal::float32_bits_from_float16(bits)
                                          : internal::float32_bits_from_bfloat16(bits);
        const std::uint64_t expected =
            dtype == DType::kFloat64 ? internal::float64_bits_from_float32_bits(single) : single;
        ASSERT_EQ(decoded[0].bits(i), expected) << i;
      }
    }
  }
}

}  // namespace
}  // namespace gradwire
