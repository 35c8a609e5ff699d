// Whole frames through encode() and decode(): blocks of 64 lanes, scales chosen by the
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

constexpr std::uint64_t kChunksOfFrame = 16;
constexpr std::uint64_t kFrameValues = kChunksOfFrame * kChunkValues;  // 65536: all halves
constexpr std::uint64_t kHalfChunks = 256;

void fill_float32(std::uint64_t chunk, Tensor* tensor) {
  std::array<std::uint32_t, kChunkValues> patterns;
  for (std::uint64_t i = 0; i < kChunksOfFrame; ++i) {
    float32_chunk(chunk * kChunksOfFrame + i, patterns);
    std::memcpy(tensor->bytes.data() + i * sizeof(patterns), patterns.data(), sizeof(patterns));
  }
}

// All patterns of a half type; the order, another one in each chunk, says which are in a group.
void fill_halves(std::uint64_t chunk, Tensor* tensor) {
  const std::uint64_t factor = 2 * (chunk * 97 % kHalfChunks) + 1;
  for (std::uint64_t i = 0; i < tensor->count; ++i) {
    tensor->set_bits(i, i * factor & 0xFFFF);
  }
}

struct FrameCheck {
  CodecSpec spec;
  DType dtype;
  std::vector<std::string_view> targets = internal::simd_targets();
  Tensor given{dtype, kFrameValues};
  Tensor decoded{dtype, kFrameValues};
  Tensor again{dtype, kFrameValues};
  std::vector<std::byte> frame = {};
  std::vector<std::byte> other = {};
  std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>();

  std::string operator()(std::uint64_t chunk) {
    if (dtype == DType::kFloat32) {
      fill_float32(chunk, &given);
    } else {
      fill_halves(chunk, &given);
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

namespace {

void add_frames(std::string_view text, DType dtype, std::uint64_t chunks,
                std::vector<ExhaustiveCase>* cases) {
  const CodecSpec spec = *CodecSpec::parse(text);
  const std::string of = dtype == DType::kFloat32 ? "" : std::string(dtype_name(dtype)) + " ";
  cases->push_back(
      {.name = of + "frames of " + std::string(text),
       .promise = spec.id == CodecId::kLossless ? "N4" : "N1",
       .chunks = chunks,
       .patterns = kFrameValues,
       .all_targets = true,
       .make_check = [=] { return ChunkCheck(FrameCheck{.spec = spec, .dtype = dtype}); }});
}

}  // namespace

void add_codec_cases(std::vector<ExhaustiveCase>* cases) {
  for (const char* const text :
       {"lossless", "near_lossless", "near_lossless:step=1,group=64", "near_lossless:mantissa=6",
        "block:bits=8,rounding=nearest", "block:bits=4,group=128,rounding=nearest", "int8", "int4",
        "cast:dtype=bf16", "cast:dtype=fp16", "natural", "mxfp8", "mxfp4", "fine", "coarse",
        "compso", "error_bounded:bound=0.01,scale=absmax,rounding=nearest",
        "error_bounded:bound=0.001,scale=absolute,filter=on",
        "near_lossless:mantissa=1,rounding=stochastic"}) {
    add_frames(text, DType::kFloat32, kFloat32Chunks / kChunksOfFrame, cases);
  }
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const char* const text :
         {"lossless", "near_lossless", "near_lossless:step=8,group=64",
          "near_lossless:step=0.00390625,group=64", "near_lossless:mantissa=3",
          "near_lossless:mantissa=6,group=64", "near_lossless:mantissa=16", "int8", "int4",
          "block:bits=8,group=8,rounding=nearest"}) {
      add_frames(text, dtype, kHalfChunks, cases);
    }
  }
}

}  // namespace gradwire::test
