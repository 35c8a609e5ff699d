// Whole frames of float32 through encode() and decode(): blocks of 64 lanes, scales chosen by the
// encoder, outliers put back by the decoder. Every vector target makes the same frames and values.
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "support/bounds.h"

namespace gradwire::test {
namespace {

constexpr std::uint64_t kChunksOfFrame = 16;  // 65536 values

struct FrameCheck {
  CodecSpec spec;
  std::vector<std::string_view> targets = internal::simd_targets();
  Tensor given{DType::kFloat32, kChunksOfFrame* kChunkValues};
  Tensor decoded{DType::kFloat32, kChunksOfFrame* kChunkValues};
  Tensor again{DType::kFloat32, kChunksOfFrame* kChunkValues};
  std::vector<std::byte> frame = {};
  std::vector<std::byte> other = {};
  std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>();

  std::string operator()(std::uint64_t chunk) {
    std::array<std::uint32_t, kChunkValues> patterns;
    for (std::uint64_t i = 0; i < kChunksOfFrame; ++i) {
      float32_chunk(chunk * kChunksOfFrame + i, patterns);
      std::memcpy(given.bytes.data() + i * sizeof(patterns), patterns.data(), sizeof(patterns));
    }
    std::string text = code(targets[0], &frame, &decoded);
    if (text.empty()) text = bound_violation(spec, given, decoded, 0);
    for (std::size_t t = 1; t < targets.size() && text.empty(); ++t) {
      text = code(targets[t], &other, &again);
      if (text.empty() && other != frame) text = differ(targets[t], "frame");
      if (text.empty() && again.bytes != decoded.bytes) text = differ(targets[t], "values");
    }
    return text;
  }

  std::string differ(std::string_view target, const char* what) const {
    return std::string(target) + ": another " + what + " than " + std::string(targets[0]);
  }

  // The frame of `given` and its values, with the kernels of that target.
  std::string code(std::string_view target, std::vector<std::byte>* out, Tensor* values) {
    internal::use_simd_target(target);
    return code_frame(spec, given, *workspace, out, values);
  }
};

}  // namespace

std::string code_frame(const CodecSpec& spec, const Tensor& given, Workspace& workspace,
                       std::vector<std::byte>* frame, Tensor* decoded) {
  frame->resize(max_encoded_size(spec, given.dtype, given.count, 1));
  const Part part{.values = given.view()};
  const Result<std::size_t> length = encode(spec, {&part, 1}, {}, *frame, workspace);
  if (!length.ok()) return length.error().to_string();
  frame->resize(*length);
  const TensorView view = decoded->view();
  const Status status = decode(*frame, {&view, 1}, workspace);
  return status.ok() ? "" : status.error().to_string();
}

void add_codec_cases(std::vector<ExhaustiveCase>* cases) {
  for (const char* const text :
       {"lossless", "near_lossless", "near_lossless:step=1,group=64", "near_lossless:mantissa=6",
        "block:bits=8,rounding=nearest", "block:bits=4,group=128,rounding=nearest", "int8", "int4",
        "cast:dtype=bf16", "cast:dtype=fp16", "natural", "mxfp8", "mxfp4"}) {
    const CodecSpec spec = *CodecSpec::parse(text);
    cases->push_back({.name = "frames of " + std::string(text),
                      .promise = spec.id == CodecId::kLossless ? "N4" : "N1",
                      .chunks = kFloat32Chunks / kChunksOfFrame,
                      .patterns = kChunksOfFrame * kChunkValues,
                      .all_targets = true,
                      .make_check = [spec] { return ChunkCheck(FrameCheck{.spec = spec}); }});
  }
}

}  // namespace gradwire::test
