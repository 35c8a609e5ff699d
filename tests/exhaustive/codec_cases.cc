// Whole frames of float32 through encode() and decode(), with the vector target in use: blocks of
// 64 lanes, scales chosen by the encoder, outliers put back by the decoder.
#include <array>
#include <cstring>
#include <memory>

#include "exhaustive/cases.h"
#include "gradwire/codec.h"
#include "support/bounds.h"

namespace gradwire::test {
namespace {

constexpr std::uint64_t kChunksOfFrame = 16;  // 65536 values

struct FrameCheck {
  CodecSpec spec;
  Tensor given{DType::kFloat32, kChunksOfFrame* kChunkValues};
  Tensor decoded{DType::kFloat32, kChunksOfFrame* kChunkValues};
  std::vector<std::byte> frame = {};
  std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>();

  std::string operator()(std::uint64_t chunk) {
    std::array<std::uint32_t, kChunkValues> patterns;
    for (std::uint64_t i = 0; i < kChunksOfFrame; ++i) {
      float32_chunk(chunk * kChunksOfFrame + i, patterns);
      std::memcpy(given.bytes.data() + i * sizeof(patterns), patterns.data(), sizeof(patterns));
    }
    frame.resize(max_encoded_size(spec, DType::kFloat32, given.count, 1));
    const Part part{.values = given.view()};
    const Result<std::size_t> length = encode(spec, {&part, 1}, {}, frame, *workspace);
    if (!length.ok()) return length.error().to_string();
    const TensorView target = decoded.view();
    const Status status = decode(std::span(frame).first(*length), {&target, 1}, *workspace);
    if (!status.ok()) return status.error().to_string();
    return bound_violation(spec, given, decoded, 0);
  }
};

}  // namespace

void add_codec_cases(std::vector<ExhaustiveCase>* cases) {
  for (const char* const text :
       {"lossless", "near_lossless", "near_lossless:step=1,group=64", "near_lossless:mantissa=6",
        "block:bits=8,rounding=nearest", "block:bits=4,group=128,rounding=nearest", "int8", "int4",
        "cast:dtype=bf16", "cast:dtype=fp16"}) {
    const CodecSpec spec = *CodecSpec::parse(text);
    cases->push_back({.name = "frames of " + std::string(text),
                      .promise = spec.id == CodecId::kLossless ? "N4" : "N1",
                      .chunks = kFloat32Chunks / kChunksOfFrame,
                      .patterns = kChunksOfFrame * kChunkValues,
                      .make_check = [spec] { return ChunkCheck(FrameCheck{.spec = spec}); }});
  }
}

}  // namespace gradwire::test
