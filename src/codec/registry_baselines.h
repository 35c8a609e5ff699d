// The registry's entries of the field's baselines (docs/baselines.md).
#ifndef GRADWIRE_CODEC_REGISTRY_BASELINES_H_
#define GRADWIRE_CODEC_REGISTRY_BASELINES_H_

#include <array>

#include "codec/fixed_block.h"
#include "codec/registry.h"

namespace gradwire::internal {

constexpr CodecSpec natural_spec() {
  CodecSpec spec;
  spec.id = CodecId::kNatural;
  spec.rounding = Rounding::kStochastic;
  return spec;
}

constexpr CodecSpec mx_spec(CodecId id) {
  CodecSpec spec;
  spec.id = id;
  spec.group = 32;
  if (id == CodecId::kMxfp8) spec.cast_dtype = DType::kFloat8E4M3;
  return spec;
}

constexpr CodecSpec levels_spec(CodecId id, std::uint8_t bits, std::uint32_t group) {
  CodecSpec spec;
  spec.id = id;
  spec.bits = bits;
  spec.group = group;
  spec.rounding = Rounding::kStochastic;
  return spec;
}

constexpr CodecSpec sign_spec() {
  CodecSpec spec;
  spec.id = CodecId::kSign;
  spec.group = 512;
  return spec;
}

constexpr CodecSpec top_k_spec() {
  CodecSpec spec;
  spec.id = CodecId::kTopK;
  spec.step = 0.01;
  spec.cast_dtype = DType::kBFloat16;
  return spec;
}

// The setting of the paper's own runs: 10 % sampled, 20 % of these kept.
constexpr CodecSpec cocktail_spec() {
  CodecSpec spec;
  spec.id = CodecId::kCocktail;
  spec.step = 0.2;
  spec.variant = 10;
  spec.bits = 4;
  spec.group = 128;
  return spec;
}

inline constexpr Parameter kNaturalKeys[] = {Parameter::kSeed, Parameter::kBlock};
inline constexpr std::string_view kNaturalExamples[] = {"natural"};
inline constexpr Parameter kMxfp8Keys[] = {Parameter::kFormat, Parameter::kBlock};
inline constexpr std::string_view kMxfp8Examples[] = {"mxfp8", "mxfp8:format=e5m2"};
inline constexpr Parameter kMxfp4Keys[] = {Parameter::kBlock};
inline constexpr std::string_view kMxfp4Examples[] = {"mxfp4"};
inline constexpr Parameter kQsgdKeys[] = {Parameter::kBits, Parameter::kBucket,
                                          Parameter::kNorm, Parameter::kCoding,
                                          Parameter::kSeed, Parameter::kBlock};
inline constexpr std::string_view kQsgdExamples[] = {"qsgd", "qsgd:bits=8,norm=max",
                                                     "qsgd:coding=elias"};
inline constexpr Parameter kTernGradKeys[] = {Parameter::kBucket, Parameter::kClip,
                                              Parameter::kSeed, Parameter::kBlock};
inline constexpr std::string_view kTernGradExamples[] = {"terngrad",
                                                         "terngrad:bucket=512,clip=2.5"};
inline constexpr Parameter kSignKeys[] = {Parameter::kBucket, Parameter::kBlock};
inline constexpr std::string_view kSignExamples[] = {"sign"};
inline constexpr Parameter kHadamardKeys[] = {Parameter::kBits, Parameter::kGroup, Parameter::kSeed,
                                              Parameter::kBlock};
inline constexpr std::string_view kHadamardExamples[] = {"hadamard"};

inline constexpr Parameter kTopKKeys[] = {Parameter::kFraction, Parameter::kDtype,
                                          Parameter::kBlock};
inline constexpr std::string_view kTopKExamples[] = {"top_k", "top_k:fraction=0.25,dtype=fp32"};
inline constexpr Parameter kCocktailKeys[] = {
    Parameter::kSample,   Parameter::kFraction, Parameter::kBits, Parameter::kGroup,
    Parameter::kRounding, Parameter::kSeed,     Parameter::kBlock};
inline constexpr std::string_view kCocktailExamples[] = {
    "cocktail", "cocktail:sample=2,fraction=0.5,rounding=stochastic"};

inline constexpr std::array kBaselineEntries = {
    CodecEntry{
        .defaults = natural_spec(),
        .summary = "natural compression: values rounded at random to one of the two powers of two "
                   "around them",
        .parameters = "seed=N, block=N",
        .bound = "|x - x'| <= |x|, 2^-126 for subnormals; unbiased: |E x' - x| <= 2^-17 |x|",
        .keys = kNaturalKeys,
        .examples = kNaturalExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_natural_block,
        .decode_block = decode_natural_block,
    },
    CodecEntry{
        .defaults = mx_spec(CodecId::kMxfp8),
        .summary = "OCP Microscaling: 8-bit floats with a power of two for 32 values",
        .parameters = "format=e4m3|e5m2, block=N",
        .bound = "|x - x'| <= |x| / 8 + 2^-18 x largest magnitude of the group",
        .keys = kMxfp8Keys,
        .examples = kMxfp8Examples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_mx_block,
        .decode_block = decode_mx_block,
    },
    CodecEntry{
        .defaults = mx_spec(CodecId::kMxfp4),
        .summary = "OCP Microscaling: 4-bit floats (E2M1) with a power of two for 32 values",
        .parameters = "block=N",
        .bound = "|x - x'| <= |x| / 4 + largest magnitude of the group / 16",
        .keys = kMxfp4Keys,
        .examples = kMxfp4Examples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_mx_block,
        .decode_block = decode_mx_block,
    },
    CodecEntry{
        .defaults = levels_spec(CodecId::kQsgd, 4, 512),
        .summary = "QSGD: small integers relative to the norm of a bucket, rounded at random",
        .parameters = "bits=2..8, bucket=N, norm=l2|max, coding=fixed|elias, seed=N, block=N",
        .bound = "|x - x'| <= step x (1 + 2^-10), step = norm of the bucket / (2^(bits-1) - 1); "
                 "unbiased",
        .keys = kQsgdKeys,
        .examples = kQsgdExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_qsgd_block,
        .decode_block = decode_qsgd_block,
    },
    CodecEntry{
        .defaults = levels_spec(CodecId::kTernGrad, 2, 4096),
        .summary = "TernGrad: -1, 0 or 1 times the largest magnitude of a bucket, at random",
        .parameters = "bucket=N, clip=X, seed=N, block=N",
        .bound = "|x - x'| <= largest magnitude of the bucket; unbiased without clip",
        .keys = kTernGradKeys,
        .examples = kTernGradExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_levels_block,
        .decode_block = decode_levels_block,
    },
    CodecEntry{
        .defaults = sign_spec(),
        .summary =
            "1-bit SGD: the sign, and the two means of a bucket; for use with error feedback",
        .parameters = "bucket=N, block=N",
        .bound = "|x - x'| <= largest magnitude of the bucket",
        .keys = kSignKeys,
        .examples = kSignExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_sign_block,
        .decode_block = decode_sign_block,
    },
    CodecEntry{
        .defaults = top_k_spec(),
        .summary = "the largest magnitudes of each block, the other values 0; for use with error "
                   "feedback",
        .parameters = "fraction=X, dtype=bf16|fp32, block=N",
        .bound = "kept values: exact (fp32) or 2^-8 |x| (bf16); others: |x|, not above any kept "
                 "magnitude",
        .keys = kTopKKeys,
        .examples = kTopKExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_top_k_block,
        .decode_block = decode_top_k_block,
    },
    CodecEntry{
        .defaults = levels_spec(CodecId::kHadamard, 4, 128),
        .summary = "randomized Hadamard rotation of a group, then small integers (THC, SDP4Bit)",
        .parameters = "bits=4|6|8, group=2^N, seed=N, block=N",
        .bound = "|x - x'| <= step, L2 error of a group <= step; step = sum of its magnitudes / "
                 "(2^(bits-1) - 1); unbiased",
        .keys = kHadamardKeys,
        .examples = kHadamardExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_hadamard_block,
        .decode_block = decode_hadamard_block,
    },
    CodecEntry{
        .defaults = cocktail_spec(),
        .summary = "CocktailSGD: a random sample, of it the largest magnitudes, as small integers; "
                   "for use with error feedback",
        .parameters = "sample=N (one in N), fraction=X, bits=4|6|8, group=N, "
                      "rounding=nearest|stochastic, seed=N, block=N",
        .bound = "kept values: as block; others: |x|",
        .keys = kCocktailKeys,
        .examples = kCocktailExamples,
        .kind = BlockKind::kFixed,
        .encode_block = encode_cocktail_block,
        .decode_block = decode_cocktail_block,
    },
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_REGISTRY_BASELINES_H_
