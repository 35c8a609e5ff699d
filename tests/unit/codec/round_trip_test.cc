// What holds for every codec of the registry with every type it takes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/fp_environment.h"
#include "support/allocation_counter.h"
#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::CodecCase;
using test::Tensor;

class EveryCodec : public ::testing::TestWithParam<CodecCase> {
 protected:
  CodecSpec spec() const { return test::spec_of(GetParam().spec); }
  DType dtype() const { return GetParam().dtype; }
  std::vector<Tensor> gradients(const std::vector<std::uint64_t>& counts) const {
    std::vector<Tensor> tensors;
    for (const std::uint64_t count : counts) {
      tensors.push_back(test::gradient_like(dtype(), count, 17 + tensors.size()));
    }
    return tensors;
  }
};

INSTANTIATE_TEST_SUITE_P(Registry, EveryCodec, ::testing::ValuesIn(test::codec_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

class EveryFloatingCodec : public EveryCodec {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryFloatingCodec, ::testing::ValuesIn(test::floating_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

TEST_P(EveryCodec, AnyPartsComeBackInPlaceAndOnceCodedStayAsTheyAre) {
  const std::vector<std::vector<std::uint64_t>> shapes = {{},
                                                          {0},
                                                          {0, 0, 0},
                                                          {1},
                                                          {0, 1, 0},
                                                          {1, 1, 1, 1, 1},
                                                          {7, 0, 13, 251},
                                                          {63},
                                                          {4096},
                                                          {4097},
                                                          {4095, 2, 0, 4095},
                                                          {10007},
                                                          {3, 8191, 5},
                                                          {33000, 1}};
  CodecSpec small_blocks = spec();
  small_blocks.block_values = 4096;
  for (const CodecSpec& tried : {spec(), small_blocks}) {
    for (const auto& counts : shapes) {
      const std::vector<Tensor> tensors = gradients(counts);
      const Bytes frame = test::encode_tensors(tried, tensors);
      EXPECT_TRUE(verify(frame).ok());
      std::vector<Tensor> decoded = test::like(tensors);
      const Status status = test::decode_into(frame, &decoded);
      ASSERT_TRUE(status.ok()) << status.error().to_string();
      // A second decoder, into buffers with another content, sees the same values: every byte
      // of the destination is written.
      std::vector<Tensor> again = tensors;
      ASSERT_TRUE(test::decode_into(frame, &again).ok());
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_EQ(decoded[i].bytes, again[i].bytes);
        if (spec().id == CodecId::kNone || spec().id == CodecId::kLossless) {
          EXPECT_EQ(decoded[i].bytes, tensors[i].bytes);
        }
      }
    }
  }
}

TEST_P(EveryCodec, InspectSaysWhatWasEncoded) {
  EncodeOptions options;
  options.metadata = "{\"a\": 1}";
  options.context = {.op = Op::kAllReduce,
                     .phase = Phase::kContribution,
                     .reduction = Reduction::kAvg,
                     .schedule = Schedule::kDirect,
                     .world = 4,
                     .sender = 3,
                     .group_id = 0x1122334455667788,
                     .step = 99,
                     .sequence = 5,
                     .segment = 1,
                     .segment_count = 2,
                     .first_value = 12345};
  CodecSpec blocks = spec();
  blocks.block_values = 4096;
  const std::vector<Tensor> tensors = gradients({5000, 0, 20});
  EncodeStats stats;
  const Bytes frame = test::encode_tensors(blocks, tensors, options, &stats);
  const Result<FrameInfo> info = inspect(frame);
  ASSERT_TRUE(info.ok()) << info.error().to_string();
  EXPECT_EQ(info->version, 0u);
  EXPECT_EQ(info->dtype, dtype());
  EXPECT_EQ(info->codec, blocks);
  EXPECT_EQ(info->codec.to_string(), blocks.to_string());
  EXPECT_EQ(info->context.op, options.context.op);
  EXPECT_EQ(info->context.phase, options.context.phase);
  EXPECT_EQ(info->context.reduction, options.context.reduction);
  EXPECT_EQ(info->context.schedule, options.context.schedule);
  EXPECT_EQ(info->context.world, 4u);
  EXPECT_EQ(info->context.sender, 3u);
  EXPECT_EQ(info->context.group_id, 0x1122334455667788u);
  EXPECT_EQ(info->context.step, 99u);
  EXPECT_EQ(info->context.sequence, 5u);
  EXPECT_EQ(info->context.segment, 1u);
  EXPECT_EQ(info->context.segment_count, 2u);
  EXPECT_EQ(info->context.first_value, 12345u);
  EXPECT_EQ(info->value_count, 5020u);
  EXPECT_EQ(info->header_length, 128 + 3 * 8 + 2 * 32 + options.metadata.size());
  EXPECT_EQ(info->encoded_length, frame.size());
  EXPECT_EQ(info->part_counts, (std::vector<std::uint64_t>{5000, 0, 20}));
  EXPECT_EQ(info->metadata, options.metadata);
  ASSERT_EQ(info->blocks.size(), 2u);
  EXPECT_EQ(info->blocks[0].values, 4096u);
  EXPECT_EQ(info->blocks[1].values, 924u);
  EXPECT_EQ(info->header_length + info->blocks[0].length + info->blocks[1].length, frame.size());
  EncodeStats counted;
  for (const BlockInfo& block : info->blocks) {
    counted.blocks_stored += block.kind == "stored";
    counted.blocks_coded += block.kind == "coded";
    counted.blocks_fixed += block.kind == "fixed";
    counted.outliers += block.outliers;
  }
  EXPECT_EQ(counted.blocks_stored, stats.blocks_stored);
  EXPECT_EQ(counted.blocks_coded, stats.blocks_coded);
  EXPECT_EQ(counted.blocks_fixed, stats.blocks_fixed);
  EXPECT_EQ(counted.outliers, stats.outliers);
}

TEST_P(EveryCodec, NeverNeedsMoreThanMaxEncodedSize) {
  for (const std::uint64_t count : {1, 2, 3, 5, 64, 100, 4100}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      // Random bits are the worst input: nothing can be saved, many groups are raw.
      const std::vector<Tensor> tensors = {test::random_bits(dtype(), count, seed)};
      const Bytes frame = test::encode_tensors(spec(), tensors);
      EXPECT_LE(frame.size(), max_encoded_size(spec(), dtype(), count, 1));
      std::vector<Tensor> decoded = test::like(tensors);
      EXPECT_TRUE(test::decode_into(frame, &decoded).ok());
    }
  }
}

TEST_P(EveryCodec, OutputDoesNotDependOnAlignmentOrReuse) {
  const std::vector<Tensor> tensors = gradients({1000});
  const Bytes expected = test::encode_tensors(spec(), tensors);
  // The same values and output at odd addresses, with a workspace that was used before.
  std::vector<std::byte> input(tensors[0].bytes.size() + 1);
  std::memcpy(input.data() + 1, tensors[0].bytes.data(), tensors[0].bytes.size());
  Bytes out(static_cast<std::size_t>(max_encoded_size(spec(), dtype(), 1000, 1)) + 1);
  Workspace workspace;
  const Part part{.values = {input.data() + 1, 1000, dtype()}, .tensor = 0, .first_index = 0};
  const std::vector<Tensor> other = gradients({50, 60, 7000});
  for (int use = 0; use < 2; ++use) {
    const auto length = encode(spec(), {&part, 1}, {}, std::span(out).subspan(1), workspace);
    ASSERT_TRUE(length.ok());
    ASSERT_EQ(Bytes(out.begin() + 1, out.begin() + 1 + static_cast<std::ptrdiff_t>(*length)),
              expected);
    Bytes frame(static_cast<std::size_t>(max_encoded_size(spec(), dtype(), 7110, 3)));
    ASSERT_TRUE(encode(spec(), test::parts_of(other), {}, frame, workspace).ok());
  }
  std::vector<Tensor> aligned = test::like(tensors);
  ASSERT_TRUE(test::decode_into(expected, &aligned).ok());
  const TensorView odd{input.data() + 1, 1000, dtype()};
  ASSERT_TRUE(decode(expected, {&odd, 1}, workspace).ok());
  EXPECT_EQ(std::memcmp(input.data() + 1, aligned[0].bytes.data(), aligned[0].bytes.size()), 0);
}

#if defined(__x86_64__)

// The table's number follows from X^4 in binary64: near a power of two its last bit counts.
TEST(RoundTrip, TheCallersRoundingChangesNoTable) {
  const std::vector<Tensor> tensors = {test::gradient_like(DType::kFloat32, 300, 1)};
  const unsigned before = _mm_getcsr();
  for (int quarter = -31; quarter < 12; quarter += 2) {
    const double border = std::exp2(quarter / 4.0);
    for (int ulps = -3; ulps <= 3; ++ulps) {
      CodecSpec spec = test::spec_of("near_lossless");
      spec.step = border * (1 + ulps * 0x1p-52);
      const Bytes expected = test::encode_tensors(spec, tensors);
      for (const unsigned mode : {0x2000u, 0x4000u, 0x6000u}) {
        _mm_setcsr((before & ~0xE040u) | mode);
        const Bytes frame = test::encode_tensors(spec, tensors);
        _mm_setcsr(before);
        EXPECT_EQ(frame, expected) << quarter << " " << ulps;
      }
    }
  }
}

TEST_P(EveryFloatingCodec, TheCallersFloatingPointModeChangesNoByte) {
  std::vector<Tensor> tensors = gradients({3000, 200});
  // Scales where flushing and rounding would show: the smallest, and subnormals among normals.
  tensors.push_back(test::gradient_like(dtype(), 500, 3, 1e-38));
  tensors.push_back(test::special_values(dtype()));
  const Bytes expected = test::encode_tensors(spec(), tensors);
  std::vector<Tensor> expected_values = test::like(tensors);
  ASSERT_TRUE(test::decode_into(expected, &expected_values).ok());
  const unsigned before = _mm_getcsr();
  // FTZ and DAZ; rounding down; rounding up with both.
  for (const unsigned mode : {0x8040u, 0x2000u, 0xC040u}) {
    std::vector<Tensor> values = test::like(tensors);
    _mm_setcsr((before & ~0xE040u) | mode);
    const Bytes frame = test::encode_tensors(spec(), tensors);
    const Status status = test::decode_into(frame, &values);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & 0xE040u, mode);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(frame, expected);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i].bytes, expected_values[i].bytes);
    }
  }
}

#endif

TEST_P(EveryFloatingCodec, NonFiniteValuesSurvive) {
  std::vector<Tensor> tensors = {test::special_values(dtype()),
                                 test::gradient_like(dtype(), 700, 5)};
  const Tensor special = tensors[0];
  for (std::size_t i = 0; i < special.count; ++i) {
    tensors[1].set_bits(20 * i, special.bits(i));
  }
  const std::vector<Tensor> decoded = test::round_trip(spec(), tensors);
  for (std::size_t part = 0; part < tensors.size(); ++part) {
    for (std::size_t i = 0; i < tensors[part].count; ++i) {
      const double value = tensors[part].value(i);
      const double back = decoded[part].value(i);
      EXPECT_EQ(std::isnan(back), std::isnan(value)) << part << " " << i;
      if (std::isinf(value)) {
        EXPECT_EQ(back, value);
      }
      // Only a cast may overflow.
      if (std::isfinite(value) && spec().id != CodecId::kCast) {
        EXPECT_TRUE(std::isfinite(back));
      }
    }
  }
}

TEST_P(EveryFloatingCodec, ZerosComeBackAsZeros) {
  for (const bool negative : {false, true}) {
    Tensor zeros(dtype(), 5000);
    const unsigned top = 8 * static_cast<unsigned>(dtype_size(dtype())) - 1;
    for (std::size_t i = 0; i < zeros.count; ++i) {
      zeros.set_bits(i, negative && i % 2 == 0 ? std::uint64_t{1} << top : 0);
    }
    const std::vector<Tensor> decoded = test::round_trip(spec(), {zeros});
    for (std::size_t i = 0; i < zeros.count; ++i) ASSERT_EQ(decoded[0].value(i), 0) << i;
  }
}

TEST_P(EveryCodec, DecodeAddAddsTheDecodedValues) {
  CodecSpec blocks = spec();
  blocks.block_values = 4096;
  const std::vector<Tensor> tensors = gradients({5000, 0, 3, 4000});
  const Bytes frame = test::encode_tensors(blocks, tensors);
  const DType sum_dtype = dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  std::vector<Tensor> sums;
  for (const Tensor& tensor : tensors) {
    sums.push_back(test::gradient_like(sum_dtype, tensor.count, 99, 1));
  }
  const std::vector<Tensor> before = sums;
  Workspace workspace;
  const Status status = decode_add(frame, test::views_of(&sums), workspace);
  if (!is_compressible(dtype())) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupportedDType);
    return;
  }
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  std::vector<Tensor> decoded = test::like(tensors);
  ASSERT_TRUE(test::decode_into(frame, &decoded).ok());
  for (std::size_t part = 0; part < sums.size(); ++part) {
    for (std::size_t i = 0; i < sums[part].count; ++i) {
      const double value = decoded[part].value(i);
      if (sum_dtype == DType::kFloat64) {
        ASSERT_EQ(sums[part].get<double>(i), before[part].get<double>(i) + value);
      } else {
        ASSERT_EQ(sums[part].get<float>(i), before[part].get<float>(i) + static_cast<float>(value));
      }
    }
  }
}

TEST_P(EveryCodec, SteadyUseAllocatesNothing) {
  const std::vector<Tensor> tensors = gradients({6000, 1, 300});
  const std::vector<Part> parts = test::parts_of(tensors);
  std::vector<Tensor> decoded = test::like(tensors);
  const std::vector<TensorView> views = test::views_of(&decoded);
  const bool adds = is_compressible(dtype());
  const DType sum_dtype = dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  std::vector<Tensor> sums;
  for (const Tensor& tensor : tensors) sums.emplace_back(sum_dtype, tensor.count);
  const std::vector<TensorView> sum_views = test::views_of(&sums);
  Bytes out(static_cast<std::size_t>(max_encoded_size(spec(), dtype(), 6301, 3)));
  const CodecSpec used = spec();
  Workspace workspace;
  for (int call = 0; call < 2; ++call) {
    test::reset_allocations();
    const auto length = encode(used, parts, {}, out, workspace);
    ASSERT_TRUE(length.ok());
    const std::span<const std::byte> frame = std::span(out).first(*length);
    const bool decodes = decode(frame, views, workspace).ok() && verify(frame).ok();
    const bool sums_up = !adds || decode_add(frame, sum_views, workspace).ok();
    const std::uint64_t calls = test::allocations().calls;
    ASSERT_TRUE(decodes && sums_up);
    if (call > 0) {
      EXPECT_EQ(calls, 0u);
    }
  }
}

}  // namespace
}  // namespace gradwire
