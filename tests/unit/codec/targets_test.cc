// Blocks of every codec and type give the same bytes and values whatever kernels are in use.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/simd_target.h"
#include "gradwire/codec.h"
#include "support/codec_cases.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::Tensor;

Bytes encode_all(const CodecSpec& spec, const Tensor& values) {
  Workspace workspace;
  Part part;
  part.values = {values.bytes.data(), values.count, values.dtype};
  Bytes out(max_encoded_size(spec, values.dtype, values.count, 1));
  const Result<std::size_t> length = encode(spec, std::span(&part, 1), {}, out, workspace);
  EXPECT_TRUE(length.ok());
  out.resize(length.ok() ? *length : 0);
  return out;
}

Bytes decode_all(const Bytes& frame, const Tensor& values) {
  Workspace workspace;
  Bytes back(values.bytes.size());
  const TensorView view{back.data(), values.count, values.dtype};
  const Status status = decode(frame, std::span(&view, 1), workspace);
  EXPECT_TRUE(status.ok());
  return back;
}

Tensor with_specials(Tensor tensor) {
  const Tensor specials = test::special_values(tensor.dtype);
  for (std::size_t i = 0; i < tensor.count; i += 61) {
    tensor.set_bits(i, specials.bits(i / 61 % static_cast<std::size_t>(specials.count)));
  }
  for (std::size_t i = 2000; i < 3500 && i < tensor.count; ++i) tensor.set_bits(i, 0);
  return tensor;
}

// Few tokens: blocks that take tables of their own.
Tensor mostly_zero(Tensor tensor) {
  for (std::size_t i = 0; i < tensor.count; ++i) {
    if (i * 2654435761u % 1024 > 40) tensor.set_bits(i, 0);
  }
  return tensor;
}

TEST(Targets, SameBytesAndValues) {
  const std::vector<std::string_view> targets = internal::simd_targets();
  std::vector<std::string> texts = {"lossless:group=64", "block:bits=4,group=40"};
  for (const CodecDescription& codec : codecs()) {
    texts.insert(texts.end(), codec.examples.begin(), codec.examples.end());
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const std::string& text : texts) {
      const CodecSpec spec = *CodecSpec::parse(text);
      if (!check_dtype(spec, dtype).ok()) continue;
      // 64 lanes from 32768 values on; the last group is short.
      constexpr std::uint64_t kCount = 40007;
      for (const Tensor& values : {test::gradient_like(dtype, kCount, 5),
                                   mostly_zero(test::gradient_like(dtype, kCount, 8)),
                                   with_specials(test::gradient_like(dtype, kCount, 6)),
                                   test::random_bits(dtype, kCount, 7)}) {
        internal::use_simd_target(targets.back());
        const Bytes frame = encode_all(spec, values);
        const Bytes back = decode_all(frame, values);
        for (const std::string_view target : targets) {
          SCOPED_TRACE(std::string(target) + " " + text + " " + std::string(dtype_name(dtype)));
          internal::use_simd_target(target);
          EXPECT_EQ(encode_all(spec, values), frame);
          EXPECT_EQ(decode_all(frame, values), back);
        }
      }
    }
  }
  internal::use_simd_target(targets.front());
}

}  // namespace
}  // namespace gradwire
