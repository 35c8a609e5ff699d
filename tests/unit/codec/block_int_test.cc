// Codec `block` against docs/format.md 4.2 and section 8, written out plainly.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "core/bit_array.h"
#include "core/counter_rng.h"
#include "quantize/block_int_format.h"
#include "support/bounds.h"
#include "support/codec_cases.h"
#include "support/frame_edit.h"

namespace gradwire {
namespace {

using internal::load_le;
using internal::store_le;
using test::Bytes;
using test::Tensor;

constexpr std::size_t kOnePartHeader = 128 + 8 + 32;

double scale_value(std::uint16_t scale) {
  return internal::float32_from_bits(internal::float32_bits_from_bfloat16(scale));
}

// The largest magnitude of [begin, end) rounded up to bfloat16 in double; 0x7FC0 for raw groups.
std::uint16_t plain_scale(const Tensor& tensor, std::size_t begin, std::size_t end) {
  double largest = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double value = tensor.value(i);
    if (!std::isfinite(value)) return internal::kRawGroupScale;
    largest = std::max(largest, std::abs(value));
  }
  if (largest == 0) return 0;
  if (largest < 0x1p-120) return internal::kRawGroupScale;
  std::uint16_t scale =
      static_cast<std::uint16_t>(internal::float32_bits(static_cast<float>(largest)) >> 16);
  if (scale_value(scale) < largest) ++scale;
  const double rounded = scale_value(scale);
  return std::isfinite(rounded) && rounded >= 0x1p-110 ? scale : internal::kRawGroupScale;
}

int plain_integer(float x, std::uint16_t scale, unsigned bits, std::uint32_t addend) {
  const int most = (1 << (bits - 1)) - 1;
  const volatile float inverse = static_cast<float>(most) / static_cast<float>(scale_value(scale));
  const volatile float t = x * inverse;
  const auto f = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(t) * 65536));
  const auto q = static_cast<int>(std::floor(static_cast<double>(f + addend) / 65536));
  return std::min(most, std::max(-most, q));
}

struct Shape {
  std::uint64_t count = 0;
  std::uint32_t tensor = 0;
  std::uint64_t first_index = 0;
};

// Values over many scales: groups of gradients, zeros, tiny and huge ones, and special values.
Tensor mixed_values(std::size_t count, std::uint64_t seed) {
  Tensor tensor = test::gradient_like(DType::kFloat32, count, seed, 1);
  std::mt19937_64 random(seed);
  const Tensor special = test::special_values(DType::kFloat32);
  float factor = 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 32 == 0) {
      factor = std::ldexp(1.0f, static_cast<int>(random() % 250) - 140);
      if (random() % 8 == 0) factor = 0;
    }
    tensor.set(i, tensor.get<float>(i) * factor);
    if (random() % 400 == 0) tensor.set_bits(i, special.bits(random() % special.count));
  }
  return tensor;
}

struct Sections {
  std::vector<std::uint16_t> scales;
  std::vector<int> integers;
  std::vector<std::uint32_t> raw;
};

// The sections that the format asks for.
Sections plain_block(const CodecSpec& spec, const FrameContext& context, const Tensor& values,
                     const std::vector<Shape>& shapes) {
  Sections sections;
  std::size_t at = 0;
  for (const Shape& shape : shapes) {
    const std::uint64_t key =
        internal::noise_key(spec.seed, context.step, shape.tensor, context.sender,
                            static_cast<std::uint8_t>(context.phase));
    for (std::uint64_t begin = 0; begin < shape.count; begin += spec.group) {
      const std::size_t end = std::min<std::size_t>(begin + spec.group, shape.count);
      const std::uint16_t scale = plain_scale(values, at + begin, at + end);
      sections.scales.push_back(scale);
      for (std::size_t i = begin; i < end; ++i) {
        const bool proper = scale != 0 && scale != internal::kRawGroupScale;
        const std::uint32_t addend = spec.rounding == Rounding::kNearest
                                         ? 32768
                                         : internal::noise16(key, shape.first_index + i);
        sections.integers.push_back(
            proper ? plain_integer(values.get<float>(at + i), scale, spec.bits, addend) : 0);
        if (scale == internal::kRawGroupScale) {
          sections.raw.push_back(values.get<std::uint32_t>(at + i));
        }
      }
    }
    at += shape.count;
  }
  return sections;
}

Bytes encode_shapes(const CodecSpec& spec, const FrameContext& context, const Tensor& values,
                    const std::vector<Shape>& shapes) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const Shape& shape : shapes) {
    parts.push_back({.values = {values.bytes.data() + 4 * at, shape.count, DType::kFloat32},
                     .tensor = shape.tensor,
                     .first_index = shape.first_index});
    at += shape.count;
  }
  Bytes frame(static_cast<std::size_t>(
      max_encoded_size(spec, DType::kFloat32, values.count, shapes.size())));
  Workspace workspace;
  EncodeOptions options;
  options.context = context;
  const auto length = encode(spec, parts, options, frame, workspace);
  EXPECT_TRUE(length.ok());
  frame.resize(length.ok() ? *length : 0);
  return frame;
}

TEST(BlockInt, BytesAreThoseOfTheFormat) {
  const std::vector<Shape> shapes = {{1000, 3, 0}, {77, 4, 12345}, {1, 9, 7}, {2000, 3, 1000}};
  const FrameContext context{.phase = Phase::kResult, .sender = 2, .step = 41};
  for (const char* text :
       {"int8", "int4", "block:bits=6,group=8", "block:bits=6,group=512,seed=5",
        "block:bits=8,rounding=nearest,group=40", "block:bits=4,rounding=nearest"}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const CodecSpec spec = test::spec_of(text);
      const Tensor values = mixed_values(3078, seed);
      const Sections expected = plain_block(spec, context, values, shapes);
      const Bytes frame = encode_shapes(spec, context, values, shapes);
      const std::span<const std::byte> block = std::span(frame).subspan(128 + 4 * 8 + 32);
      const std::size_t groups = expected.scales.size();
      const auto packed = static_cast<std::size_t>(internal::bit_array_bytes(3078, spec.bits));
      ASSERT_EQ(block.size(), 2 * groups + packed + 4 * expected.raw.size()) << text;
      for (std::size_t i = 0; i < groups; ++i) {
        ASSERT_EQ(load_le<std::uint16_t>(block.data() + 2 * i), expected.scales[i]) << text << i;
      }
      for (std::size_t i = 0; i < 3078; ++i) {
        const std::uint32_t pattern =
            internal::bit_array_get(block.subspan(2 * groups, packed), i, spec.bits);
        ASSERT_EQ(pattern,
                  static_cast<std::uint32_t>(expected.integers[i]) & ((1u << spec.bits) - 1))
            << text << " value " << i << " seed " << seed;
      }
      for (std::size_t i = 0; i < expected.raw.size(); ++i) {
        ASSERT_EQ(load_le<std::uint32_t>(block.data() + 2 * groups + packed + 4 * i),
                  expected.raw[i]);
      }
    }
  }
}

// docs/error_bounds.md, for each value of random bits and of all scales.
TEST(BlockInt, EveryValueObeysTheBound) {
  for (const char* text :
       {"int8", "int4", "block:bits=6", "block:bits=8,rounding=nearest",
        "block:bits=6,rounding=nearest", "block:bits=4,rounding=nearest,group=8"}) {
    const CodecSpec spec = test::spec_of(text);
    const double most = (1 << (spec.bits - 1)) - 1;
    for (const std::uint64_t seed : {11, 12, 13}) {
      SCOPED_TRACE(std::string(text) + " seed " + std::to_string(seed));
      Tensor random = test::random_bits(DType::kFloat32, 20000, seed);
      for (Tensor tensor : {mixed_values(20000, seed), random}) {
        const std::vector<Tensor> decoded = test::round_trip(spec, {tensor});
        for (std::size_t begin = 0; begin < tensor.count; begin += spec.group) {
          const std::size_t end = std::min<std::size_t>(begin + spec.group, tensor.count);
          const std::uint16_t scale = plain_scale(tensor, begin, end);
          const double unit = scale_value(scale) / most;
          const double bound =
              (spec.rounding == Rounding::kNearest ? unit / 2 : unit) * (1 + 0x1p-10);
          for (std::size_t i = begin; i < end; ++i) {
            if (scale == internal::kRawGroupScale) {
              ASSERT_EQ(decoded[0].bits(i), tensor.bits(i)) << i;
            } else {
              const double error = std::abs(decoded[0].value(i) - tensor.value(i));
              ASSERT_FALSE(!(error <= bound)) << i << ": " << error << " > " << bound;
            }
          }
        }
      }
    }
  }
}

TEST(BlockInt, LargestMagnitudeOfAGroupNearTheTopStaysFinite) {
  Tensor tensor(DType::kFloat32, 64);
  for (std::size_t i = 0; i < 64; ++i)
    tensor.set_bits(i, 0x7F7F0000u - static_cast<std::uint32_t>(i));
  const std::vector<Tensor> decoded = test::round_trip(test::spec_of("int8"), {tensor});
  for (std::size_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isfinite(decoded[0].value(i)));
  // Rounded up, this scale would be Inf: raw.
  tensor.set_bits(5, 0x7F7F0001u);
  EXPECT_EQ(test::round_trip(test::spec_of("int8"), {tensor})[0].bytes, tensor.bytes);
}

constexpr DType kOtherTypes[] = {DType::kFloat64, DType::kFloat16, DType::kBFloat16};

TEST(BlockInt, OtherTypesObeyTheBound) {
  for (const DType dtype : kOtherTypes) {
    for (const char* text :
         {"int8", "int4", "block:bits=6,group=8", "block:bits=8,rounding=nearest,group=40",
          "block:bits=4,rounding=nearest,group=4096"}) {
      for (const std::size_t count : {1, 7, 65, 4097, 20001}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + text + " " + std::to_string(count));
        const CodecSpec spec = test::spec_of(text);
        for (const Tensor& tensor : {test::gradient_like(dtype, count, count, 1e-6),
                                     test::gradient_like(dtype, count, count, 1e4),
                                     test::random_bits(dtype, count, count)}) {
          const std::vector<Tensor> decoded = test::round_trip(spec, {tensor});
          ASSERT_EQ(test::bound_violation(spec, tensor, decoded[0], 0), "");
        }
      }
    }
  }
}

TEST(BlockInt, SpecialValuesOfOtherTypesStayBitForBit) {
  for (const DType dtype : kOtherTypes) {
    const Tensor special = test::special_values(dtype);  // a group of its own, with NaN
    EXPECT_EQ(test::round_trip(test::spec_of("int8"), {special})[0].bytes, special.bytes);
    Tensor signed_zeros(dtype, 100);
    for (std::size_t i = 0; i < 100; i += 3) {
      signed_zeros.set_bits(i, std::uint64_t{0x80} << (8 * (dtype_size(dtype) - 1)));
    }
    EXPECT_EQ(test::round_trip(test::spec_of("int8"), {signed_zeros})[0].bytes,
              Tensor(dtype, 100).bytes);
  }
}

TEST(BlockInt, LargestFloat16StaysFinite) {
  // Its scale is 65536, which is not a float16.
  for (const char* text : {"int8", "int4", "block:bits=6,rounding=nearest"}) {
    Tensor tensor(DType::kFloat16, 64);
    for (std::size_t i = 0; i < 64; ++i) tensor.set_bits(i, (i % 2 ? 0x7BFF : 0xFBFF) - i / 2);
    const Tensor decoded = test::round_trip(test::spec_of(text), {tensor})[0];
    for (std::size_t i = 0; i < 64; ++i) ASSERT_TRUE(std::isfinite(decoded.value(i))) << i;
    EXPECT_EQ(test::bound_violation(test::spec_of(text), tensor, decoded, 0), "");
  }
}

// What the range of float32 does not hold is in raw groups; the groups beside them are not.
TEST(BlockInt, Float64BeyondFloat32IsRaw) {
  Tensor tensor = test::gradient_like(DType::kFloat64, 320, 1);
  for (const auto& [group, factor] : {std::pair{1, 1e300}, {2, 1e-300}, {3, 0x1p-140}}) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t place = 64 * static_cast<std::size_t>(group) + i;
      tensor.set(place, tensor.get<double>(place) * factor);
    }
  }
  tensor.set(256, 0x1.FEp127 + 0x1p75);  // its scale is not finite, though it is a float32
  const Bytes frame = test::encode_tensors(test::spec_of("int8"), {tensor});
  EXPECT_EQ(frame.size(), kOnePartHeader + 5 * 2 + 320 + 4 * 64 * 8);
  const Tensor decoded = test::round_trip(test::spec_of("int8"), {tensor})[0];
  for (std::size_t i = 64; i < 320; ++i) ASSERT_EQ(decoded.bits(i), tensor.bits(i)) << i;
  EXPECT_NE(decoded.bits(0), tensor.bits(0));
}

TEST(BlockInt, StochasticRoundingIsUnbiased) {
  // 127 in each group makes the step exactly 1 (bits=8).
  constexpr std::size_t kGroups = 4096;
  const CodecSpec spec = test::spec_of("int8");
  for (const double value : {0.25, -0.25, 0.5, 41.0625, -99.9, 0.001, 126.75}) {
    Tensor tensor(DType::kFloat32, 64 * kGroups);
    for (std::size_t i = 0; i < tensor.count; ++i) {
      tensor.set(i, i % 64 == 0 ? 127.0f : static_cast<float>(value));
    }
    const std::vector<Tensor> decoded = test::round_trip(spec, {tensor});
    double sum = 0;
    for (std::size_t i = 0; i < tensor.count; ++i) {
      if (i % 64 != 0) sum += decoded[0].value(i);
    }
    const double count = 63 * kGroups;
    const double fraction = value - std::floor(value);
    const double sigma = std::sqrt(fraction * (1 - fraction) / count);
    // Fixed noise, so this does not change from run to run; 2^-15 is the bound on the bias.
    EXPECT_LE(std::abs(sum / count - value), 4 * sigma + 0x1p-15) << value;
  }
}

TEST(BlockInt, NoiseFollowsTheParameterNotTheFrame) {
  const CodecSpec spec = test::spec_of("int8:seed=3");
  const Tensor values = test::gradient_like(DType::kFloat32, 1280, 1);
  const auto decoded = [&](const FrameContext& context, const std::vector<Shape>& shapes) {
    const Bytes frame = encode_shapes(spec, context, values, shapes);
    Tensor out(DType::kFloat32, 1280);
    std::vector<TensorView> views;
    std::size_t at = 0;
    for (const Shape& shape : shapes) {
      views.push_back({out.bytes.data() + 4 * at, shape.count, DType::kFloat32});
      at += shape.count;
    }
    Workspace workspace;
    EXPECT_TRUE(decode(frame, views, workspace).ok());
    return out.bytes;
  };
  const FrameContext context{.sender = 1, .step = 8};
  const auto whole = decoded(context, {{1280, 5, 0}});
  EXPECT_EQ(decoded(context, {{256, 5, 0}, {1024, 5, 256}}), whole);
  EXPECT_NE(decoded(context, {{1280, 6, 0}}), whole);
  EXPECT_NE(decoded(context, {{1280, 5, 64}}), whole);
  EXPECT_NE(decoded({.sender = 2, .step = 8}, {{1280, 5, 0}}), whole);
  EXPECT_NE(decoded({.sender = 1, .step = 9}, {{1280, 5, 0}}), whole);
  EXPECT_NE(decoded({.phase = Phase::kResult, .sender = 1, .step = 8}, {{1280, 5, 0}}), whole);
}

// A block of one proper, one zero and one raw group (bits=8, group=64).
class CorruptBlockInt : public ::testing::Test {
 protected:
  void SetUp() override {
    tensor_ = test::gradient_like(DType::kFloat32, 192, 1);
    for (std::size_t i = 64; i < 128; ++i) tensor_.set(i, 0.0f);
    tensor_.set_bits(130, 0x7FC12345);
    frame_ = test::encode_tensors(test::spec_of("int8"), {tensor_});
    ASSERT_EQ(frame_.size(), kOnePartHeader + 3 * 2 + 192 + 256);
  }
  // Decodes after a change of the block's bytes, with right checksums.
  Status decode_changed(const std::function<void(std::byte*)>& change) {
    Bytes damaged = frame_;
    change(damaged.data() + kOnePartHeader);
    test::fix_checksums(damaged);
    std::vector<Tensor> target = {Tensor(DType::kFloat32, 192)};
    return test::decode_into(damaged, &target);
  }
  void expect_corrupt(const std::function<void(std::byte*)>& change, std::string_view reason) {
    const Status status = decode_changed(change);
    ASSERT_FALSE(status.ok()) << reason;
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptBlock);
    EXPECT_NE(status.error().message.find(reason), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().theirs, "0");
  }

  Tensor tensor_;
  Bytes frame_;
};

TEST_F(CorruptBlockInt, ScalesOutOfRange) {
  for (const std::uint16_t scale :
       {0x8000, 0xBF80, 0x0001, 0x087F, 0x7F80, 0xFF80, 0x7FC1, 0xFFC0, 0x7F81}) {
    expect_corrupt([scale](std::byte* block) { store_le(block, scale); }, "scale");
  }
  EXPECT_TRUE(decode_changed([](std::byte* b) { store_le<std::uint16_t>(b, 0x0880); }).ok());
  EXPECT_TRUE(decode_changed([](std::byte* b) { store_le<std::uint16_t>(b, 0x7F7F); }).ok());
}

TEST_F(CorruptBlockInt, IntegerBelowTheLeast) {
  expect_corrupt([](std::byte* block) { block[6 + 10] = std::byte{0x80}; }, "integer");
  EXPECT_TRUE(decode_changed([](std::byte* block) { block[6 + 10] = std::byte{0x81}; }).ok());
}

TEST_F(CorruptBlockInt, IntegersOfZeroAndRawGroupsAreIgnored) {
  Bytes damaged = frame_;
  for (std::size_t i = 64; i < 192; ++i) damaged[kOnePartHeader + 6 + i] = std::byte{0x80};
  test::fix_checksums(damaged);
  std::vector<Tensor> target = {Tensor(DType::kFloat32, 192)};
  std::vector<Tensor> expected = {Tensor(DType::kFloat32, 192)};
  EXPECT_TRUE(test::decode_into(damaged, &target).ok());
  EXPECT_TRUE(test::decode_into(frame_, &expected).ok());
  EXPECT_EQ(target[0].bytes, expected[0].bytes);
}

TEST_F(CorruptBlockInt, RawGroupsMustBeThoseOfTheIndex) {
  expect_corrupt([](std::byte* block) { store_le<std::uint16_t>(block, 0x7FC0); }, "raw groups");
  expect_corrupt([](std::byte* block) { store_le<std::uint16_t>(block + 4, 0); }, "raw groups");
  for (const std::uint32_t count : {0u, 2u, 0xFFFFFFFFu}) {
    Bytes damaged = frame_;
    test::change_entry(damaged, 0, [count](internal::BlockEntry& e) { e.outlier_count = count; });
    std::vector<Tensor> target = {Tensor(DType::kFloat32, 192)};
    const Status status = test::decode_into(damaged, &target);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptBlock);
  }
}

TEST_F(CorruptBlockInt, LengthsThatDoNotFit) {
  for (const std::size_t length : {0, 5, 6, 197, 198, 453, 455, 1000}) {
    Bytes damaged = frame_;
    damaged.resize(kOnePartHeader + length);
    test::change_header(damaged,
                        [&](internal::FrameHeader& h) { h.encoded_length = damaged.size(); });
    test::change_entry(damaged, 0, [&](internal::BlockEntry& e) {
      e.length = static_cast<std::uint32_t>(length);
    });
    std::vector<Tensor> target = {Tensor(DType::kFloat32, 192)};
    const Status status = test::decode_into(damaged, &target);
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptBlock) << length;
  }
}

}  // namespace
}  // namespace gradwire
