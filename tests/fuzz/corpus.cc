#include "fuzz/corpus.h"

#include "support/codec_cases.h"
#include "support/golden_files.h"

namespace gradwire::test {
namespace {

constexpr std::size_t kSmallBytes = 1600;
constexpr std::size_t kMostBytes = 48000;

void add(Corpus* corpus, Bytes frame) {
  if (frame.empty() || frame.size() > kMostBytes) return;
  (frame.size() <= kSmallBytes ? corpus->small : corpus->large).push_back(std::move(frame));
}

// Gradient-like values with a few special ones, most of them zero if `sparse`.
Tensor make_values(DType dtype, std::uint64_t count, bool sparse) {
  Tensor tensor = gradient_like(dtype, count, 100 + count);
  if (!is_compressible(dtype)) return tensor;
  if (sparse) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 64 != 5) tensor.set_bits(i, 0);
    }
  }
  const Tensor special = special_values(dtype);
  for (std::size_t i = 0; i < special.count && 9 * i + 3 < count; ++i) {
    if (i % 4 == count % 4) tensor.set_bits(9 * i + 3, special.bits(i));
  }
  return tensor;
}

void add_case(Corpus* corpus, const CodecCase& one) {
  CodecSpec spec = spec_of(one.spec);
  spec.block_values = 4096;
  EncodeOptions options;
  const auto make = [&](const std::vector<std::uint64_t>& counts, bool sparse) {
    std::vector<Tensor> tensors;
    for (const std::uint64_t count : counts) {
      tensors.push_back(make_values(one.dtype, count, sparse));
    }
    add(corpus, encode_tensors(spec, tensors, options));
  };
  make({3}, false);
  make({40, 0, 21}, false);
  make({270}, false);
  options.metadata = "{\"m\": 1}";
  make({200, 70}, true);
  make({4200}, false);
  // 16, 32 and 64 lanes.
  spec.block_values = 262144;
  for (const std::uint64_t count : {4100u, 8300u, 32800u}) {
    make({count}, true);
    make({count}, false);
  }
}

}  // namespace

Corpus make_corpus() {
  Corpus corpus;
  for (const CodecCase& one : codec_cases()) {
    // Of the types that only `none` takes the size is all that differs.
    if (is_compressible(one.dtype) || one.dtype == DType::kUInt8) add_case(&corpus, one);
  }
  for (const GoldenFrame& golden : golden_frames()) add(&corpus, golden.bytes());
  return corpus;
}

}  // namespace gradwire::test
