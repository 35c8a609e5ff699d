// Codec error_bounded as a whole: what its scales, its filter and its noise depend on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/bounds.h"
#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::Tensor;

Tensor floats(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(i, values[i]);
  return tensor;
}

std::vector<float> decoded(const char* spec, const std::vector<float>& values) {
  const Tensor result = test::round_trip(test::spec_of(spec), {floats(values)})[0];
  std::vector<float> back;
  for (std::size_t i = 0; i < result.count; ++i) {
    back.push_back(static_cast<float>(result.value(i)));
  }
  return back;
}

// Steps by hand: X s rounded down to a power of two; nearest.
TEST(ErrorBounded, ScalesByHand) {
  using F = std::vector<float>;
  const auto nearest = [](const char* bound_and_scale, const F& values) {
    return decoded(("error_bounded:rounding=nearest," + std::string(bound_and_scale)).c_str(),
                   values);
  };
  // Range 6, step 2^floor(log2(2 x 0.2 x 6)) = 2.
  EXPECT_EQ(nearest("bound=0.2,scale=range", {-2, 4, 0.9f, 1.1f}), (F{-2, 4, 0, 2}));
  // Largest 4, step 2^floor(log2(1.6)) = 1.
  EXPECT_EQ(nearest("bound=0.2,scale=absmax", {-2, 4, 0.9f, 1.6f}), (F{-2, 4, 1, 2}));
  // Step 0.25 whatever the values are.
  EXPECT_EQ(nearest("bound=0.2,scale=absolute", {-2, 4, 0.9f, 1.6f}), (F{-2, 4, 1, 1.5f}));
  // RMS 1, step 0.5.
  EXPECT_EQ(nearest("bound=0.26,scale=rms", {-1, 1, 1.2f, 0.7f}), (F{-1, 1, 1, 0.5f}));
}

TEST(ErrorBounded, ValuesWithoutARangeAreKept) {
  for (const char* spec : {"error_bounded:scale=range,bound=1", "compso"}) {
    const std::vector<float> constant(100, 0.1f);
    EXPECT_EQ(decoded(spec, constant), constant);
    EXPECT_EQ(decoded(spec, {3.3f}), std::vector<float>{3.3f});
    EXPECT_EQ(decoded(spec, {}), std::vector<float>{});
  }
}

TEST(ErrorBounded, RangeBeyondTheTypeKeepsTheBound) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const Tensor given = floats({kMost, -kMost, 1, 0x1p-149f, kMost / 3});
  for (const char* text :
       {"compso", "error_bounded:scale=range,bound=1", "error_bounded:scale=absmax,bound=1",
        "error_bounded:scale=range,bound=1,rounding=nearest", "coarse",
        "error_bounded:scale=absolute,bound=1.7e38"}) {
    const CodecSpec spec = test::spec_of(text);
    const Tensor back = test::round_trip(spec, {given})[0];
    EXPECT_EQ(test::bound_violation(spec, given, back, 0), "") << text;
    for (std::size_t i = 0; i < back.count; ++i) EXPECT_TRUE(std::isfinite(back.value(i))) << text;
  }
}

// Results are on a grid that the halves have too: as float32 they are the same, noise and all.
TEST(ErrorBounded, HalvesBecomeWhatTheirFloat32Becomes) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor halves = test::gradient_like(dtype, 20000, 4);
    std::vector<float> wide;
    for (std::size_t i = 0; i < halves.count; ++i) {
      wide.push_back(static_cast<float>(halves.value(i)));
    }
    for (const char* text :
         {"unbiased", "coarse:filter=on,coder=huffman", "error_bounded:scale=range,group=tensor",
          "error_bounded:group=tensor,rounding=nearest", "error_bounded:scale=absmax"}) {
      const CodecSpec spec = test::spec_of(text);
      const Tensor back = test::round_trip(spec, {halves})[0];
      const Tensor of_wide = test::round_trip(spec, {floats(wide)})[0];
      for (std::size_t i = 0; i < back.count; ++i) {
        ASSERT_EQ(back.value(i), of_wide.value(i)) << text << " value " << i;
      }
    }
  }
}

TEST(ErrorBounded, FilterLeavesNothingWithinTheStep) {
  const Tensor given = test::gradient_like(DType::kFloat32, 20000, 3);
  for (const char* text : {"coarse:filter=on", "compso", "error_bounded:scale=absmax,filter=on"}) {
    CodecSpec spec = test::spec_of(text);
    const Tensor with = test::round_trip(spec, {given})[0];
    spec.options = static_cast<BoundOptions>(static_cast<unsigned>(spec.options) & ~1u);
    const Tensor without = test::round_trip(spec, {given})[0];
    std::size_t filtered = 0;
    for (std::size_t i = 0; i < given.count; ++i) {
      if (with.value(i) == without.value(i)) continue;
      ++filtered;
      // What the filter took was rounded to one step: the value was smaller than that.
      ASSERT_EQ(with.value(i), 0) << text;
      ASSERT_LT(std::abs(given.value(i)), std::abs(without.value(i))) << text;
    }
    EXPECT_GT(filtered, 0u) << text;
  }
}

// group=tensor: the step is that of all values, wherever the blocks end; the part's place in the
// frame does not matter.
TEST(ErrorBounded, OneScaleForEachPart) {
  const std::uint64_t count = 30011;
  std::vector<Tensor> tensors = {
      test::gradient_like(DType::kFloat32, count, 5), test::gradient_like(DType::kFloat32, 7, 6),
      Tensor(DType::kFloat32, 100), test::gradient_like(DType::kFloat32, count, 7)};
  tensors[3].set(20000, 1000.0f);
  for (const char* scale : {"rms", "range", "absmax"}) {
    CodecSpec spec = test::spec_of("error_bounded:group=tensor,rounding=nearest,block=4096,scale=" +
                                   std::string(scale));
    std::vector<Tensor> back = test::round_trip(spec, tensors);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      EXPECT_EQ(test::bound_violation(spec, tensors[t], back[t], 0), "") << scale;
      const Tensor alone = test::round_trip(spec, {tensors[t]})[0];
      // Apart from values that only one of the two blocks' tables lets escape.
      for (std::size_t i = 0; i < alone.count; ++i) {
        if (alone.bits(i) == tensors[t].bits(i) || back[t].bits(i) == tensors[t].bits(i)) continue;
        ASSERT_EQ(alone.bits(i), back[t].bits(i)) << scale << " " << t << " " << i;
      }
    }
    // The outlier at the end makes the step of the first blocks larger.
    EXPECT_NE(test::round_trip(
                  test::spec_of("error_bounded:rounding=nearest,scale=" + std::string(scale)),
                  {tensors[3]})[0]
                  .bytes,
              back[3].bytes);
  }
}

// Unaligned values, as a part of a larger buffer may have them.
TEST(ErrorBounded, UnalignedParts) {
  const Tensor given = test::gradient_like(DType::kFloat32, 9000, 8);
  Bytes askew(given.bytes.size() + 1);
  std::copy(given.bytes.begin(), given.bytes.end(), askew.begin() + 1);
  for (const char* text : {"unbiased", "compso", "near_lossless:mantissa=1,rounding=stochastic"}) {
    const CodecSpec spec = test::spec_of(text);
    const Bytes expected = test::encode_tensors(spec, {given});
    Bytes frame(max_encoded_size(spec, DType::kFloat32, given.count, 1));
    const Part part{.values = {askew.data() + 1, given.count, DType::kFloat32}};
    Workspace workspace;
    const Result<std::size_t> length = encode(spec, {&part, 1}, {}, frame, workspace);
    ASSERT_TRUE(length.ok());
    frame.resize(*length);
    EXPECT_EQ(frame, expected) << text;
  }
}

// The noise of a value follows from seed, step, tensor, sender, phase and its index in the
// parameter: pieces of a parameter give what the whole gives.
TEST(ErrorBounded, NoiseBelongsToThePlaceInTheParameter) {
  const Tensor given = test::gradient_like(DType::kFloat32, 8192, 9);
  const CodecSpec spec = test::spec_of("unbiased:seed=5");
  const Tensor whole = test::round_trip(spec, {given})[0];
  const auto encode_piece = [&](std::uint64_t first, std::uint32_t tensor,
                                const FrameContext& context) {
    Tensor back(DType::kFloat32, given.count - first);
    const Part part{.values = {given.bytes.data() + 4 * first, back.count, DType::kFloat32},
                    .tensor = tensor,
                    .first_index = first};
    EncodeOptions options;
    options.context = context;
    Bytes frame(max_encoded_size(spec, DType::kFloat32, back.count, 1));
    Workspace workspace;
    const Result<std::size_t> length = encode(spec, {&part, 1}, options, frame, workspace);
    EXPECT_TRUE(length.ok());
    frame.resize(length.ok() ? *length : 0);
    const TensorView view = back.view();
    EXPECT_TRUE(decode(frame, {&view, 1}, workspace).ok());
    return back;
  };
  const Tensor tail = encode_piece(4096, 0, {});
  EXPECT_TRUE(std::equal(tail.bytes.begin(), tail.bytes.end(), whole.bytes.begin() + 4 * 4096));
  EXPECT_NE(encode_piece(0, 1, {}).bytes, whole.bytes);
  EXPECT_NE(encode_piece(0, 0, {.step = 1}).bytes, whole.bytes);
  EXPECT_NE(encode_piece(0, 0, {.phase = Phase::kResult}).bytes, whole.bytes);
  EXPECT_NE(encode_piece(0, 0, {.world = 2, .sender = 1}).bytes, whole.bytes);
  CodecSpec other = spec;
  other.seed = 6;
  EXPECT_NE(test::round_trip(other, {given})[0].bytes, whole.bytes);
}

// A group that rounding leaves nothing of costs its scale only, as one of zeros does.
TEST(ErrorBounded, EmptiedGroupsCostNothing) {
  constexpr std::size_t kTables = 128 + 8 + 32;  // header, part table, index
  std::vector<float> values(65536, 1e-9f);
  values[0] = 1;
  const CodecSpec spec = test::spec_of("error_bounded:scale=absmax,group=tensor,filter=on,bound=1");
  // The one group that is left: lane states, a table, and the first word of each lane.
  EXPECT_LT(test::encode_tensors(spec, {floats(values)}).size(), kTables + 512 + 32 + 128 + 16);
  EXPECT_EQ(test::encode_tensors(spec, {Tensor(DType::kFloat32, 65536)}).size(), kTables + 8);
}

}  // namespace
}  // namespace gradwire
