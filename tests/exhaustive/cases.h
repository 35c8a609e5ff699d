// What is run over all bit patterns, and how: a case is cut into chunks, which workers take.
#ifndef GRADWIRE_TESTS_EXHAUSTIVE_CASES_H_
#define GRADWIRE_TESTS_EXHAUSTIVE_CASES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradwire/codec.h"
#include "support/tensor.h"

namespace gradwire::test {

// Checks the chunk of that number; returns what is wrong, empty if nothing. Has buffers of its own.
using ChunkCheck = std::function<std::string(std::uint64_t chunk)>;

struct ExhaustiveCase {
  std::string name = {};
  std::string promise = {};  // of RELIABILITY.md
  std::uint64_t chunks = 0;
  std::uint64_t patterns = 0;  // in a chunk
  bool all_targets = false;    // every vector target is compared, else the one in use
  std::function<ChunkCheck()> make_check = {};
  // Of random cases, where a chunk is some groups or collectives that follow from seed and chunk.
  std::string kind = "exhaustive";
  std::string unit = "patterns";
  std::uint64_t cost = 0;  // of a chunk, in patterns, where a sample is taken; 0: its patterns

  bool random() const { return kind != "exhaustive"; }
};

// Float32 kernels: step form, mantissa form, lossless; against a model in binary64, and every
// vector target against the plain kernel byte for byte.
void add_float32_cases(std::vector<ExhaustiveCase>* cases);
// Float16 and bfloat16: exponent form for every T and M, and the conversions of `cast`.
void add_half_cases(std::vector<ExhaustiveCase>* cases);
// near_lossless of float16 and bfloat16: every k, every T and M.
void add_half_near_lossless_cases(std::vector<ExhaustiveCase>* cases);
// `block` of float16 and bfloat16: every scale with all values that it may have.
void add_half_block_cases(std::vector<ExhaustiveCase>* cases);
// Stochastic rounding to steps: bound and grid over all float32 patterns, and the mean of 10^8
// draws.
void add_stochastic_cases(std::vector<ExhaustiveCase>* cases);
// encode() and decode() of whole frames of float32, float16 and bfloat16.
void add_codec_cases(std::vector<ExhaustiveCase>* cases);
// 10^9 random groups through frames of lossy codecs, and 10^5 random collectives; all follow from
// `seed`.
void add_random_cases(std::uint64_t seed, std::vector<ExhaustiveCase>* cases);

// The frame of these values and what they become; returns an error's text, empty if none.
std::string code_frame(const CodecSpec& spec, const Tensor& given, Workspace& workspace,
                       std::vector<std::byte>* frame, Tensor* decoded);

// ---- all float32 patterns in chunks ----

inline constexpr std::uint64_t kChunkValues = 4096;
inline constexpr std::uint64_t kFloat32Chunks = std::uint64_t{1} << 20;

// Chunk e << 16 | m: both signs, exponent fields 16 e to 16 e + 15, and all mantissas whose upper
// 16 bits are m, so that kernels meet signs and exponents mixed. Each pattern is in one chunk.
void float32_chunk(std::uint64_t chunk, std::span<std::uint32_t, kChunkValues> patterns);
// The first exponent field of the chunk.
constexpr std::int32_t first_field(std::uint64_t chunk) {
  return static_cast<std::int32_t>(16 * (chunk >> 16));
}

// "pattern 7F800000 (inf) became 00000000 (0): what".
std::string finding(std::uint32_t given, std::uint32_t decoded, std::string_view what);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_EXHAUSTIVE_CASES_H_
