#include <gtest/gtest.h>

#include <cfenv>
#include <functional>
#include <string>

#include "codec/registry.h"
#include "gradwire/codec.h"

namespace gradwire {
namespace {

Error parse_error(std::string_view text) {
  const Result<CodecSpec> spec = CodecSpec::parse(text);
  EXPECT_FALSE(spec.ok()) << text;
  return spec.ok() ? Error{} : spec.error();
}

std::string canonical(std::string_view text) {
  const Result<CodecSpec> spec = CodecSpec::parse(text);
  return spec.ok() ? spec->to_string() : spec.error().to_string();
}

TEST(Spec, Defaults) {
  const CodecSpec near = *CodecSpec::parse("near_lossless");
  EXPECT_EQ(near.id, CodecId::kNearLossless);
  EXPECT_EQ(near.step, 0.00575);
  EXPECT_EQ(near.mantissa, 0);
  EXPECT_EQ(near.group, 256u);
  EXPECT_EQ(near.block_values, 262144u);
  EXPECT_EQ(CodecSpec::parse("lossless")->group, 256u);
  EXPECT_EQ(CodecSpec::parse("cast")->cast_dtype, DType::kBFloat16);
  EXPECT_EQ(*CodecSpec::parse("none"), CodecSpec{});
  const CodecSpec block = *CodecSpec::parse("block");
  EXPECT_EQ(block.bits, 8);
  EXPECT_EQ(block.group, 64u);
  EXPECT_EQ(block.rounding, Rounding::kStochastic);
}

TEST(Spec, AliasesNameBlockCodecs) {
  EXPECT_EQ(*CodecSpec::parse("int8"),
            *CodecSpec::parse("block:bits=8,group=64,rounding=stochastic"));
  EXPECT_EQ(*CodecSpec::parse("int4"),
            *CodecSpec::parse("block:bits=4,group=128,rounding=stochastic"));
  EXPECT_EQ(*CodecSpec::parse("int4:group=64"), *CodecSpec::parse("block:bits=4"));
}

TEST(Spec, CanonicalText) {
  EXPECT_EQ(canonical("none"), "none");
  EXPECT_EQ(canonical("none:block=4096"), "none:block=4096");
  EXPECT_EQ(canonical("cast"), "cast:dtype=bf16");
  EXPECT_EQ(canonical("cast:dtype=float16"), "cast:dtype=fp16");
  EXPECT_EQ(canonical("cast:dtype=bfloat16"), "cast:dtype=bf16");
  EXPECT_EQ(canonical("int8"), "block:bits=8");
  EXPECT_EQ(canonical("int4"), "block:bits=4,group=128");
  EXPECT_EQ(canonical("block:block=8192,seed=18446744073709551615,rounding=nearest,bits=6,group=8"),
            "block:bits=6,group=8,rounding=nearest,seed=18446744073709551615,block=8192");
  EXPECT_EQ(canonical("near_lossless:step=0.00575,group=256"), "near_lossless");
  EXPECT_EQ(canonical("near_lossless:step=1"), "near_lossless:step=1");
  EXPECT_EQ(canonical("near_lossless:mantissa=6"), "near_lossless:mantissa=6");
  EXPECT_EQ(canonical("lossless:group=64"), "lossless:group=64");
  EXPECT_EQ(canonical("near_lossless:seed=3,rounding=stochastic,mantissa=1"),
            "near_lossless:mantissa=1,rounding=stochastic,seed=3");
  EXPECT_EQ(canonical("error_bounded"), "error_bounded:bound=0.125");
  EXPECT_EQ(canonical("unbiased"), "error_bounded:bound=0.125");
  EXPECT_EQ(canonical("fine"), "error_bounded:bound=0.03125");
  EXPECT_EQ(canonical("coarse:seed=7"), "error_bounded:bound=1,seed=7");
  EXPECT_EQ(canonical("compso"), "error_bounded:bound=0.004,scale=range,group=tensor,filter=on");
  EXPECT_EQ(canonical("compso:group=4096"),
            "error_bounded:bound=0.004,scale=range,group=4096,filter=on");
  EXPECT_EQ(canonical("compso:filter=off,group=256,scale=rms,rounding=nearest"),
            "error_bounded:bound=0.004,rounding=nearest");
}

TEST(Spec, SpeedChoosesTheCoder) {
  EXPECT_EQ(CodecSpec::parse("lossless")->coder, Coder::kTans);
  EXPECT_EQ(CodecSpec::parse("int8")->coder, Coder::kNone);
  EXPECT_EQ(canonical("lossless:speed=fast"), "lossless:coder=huffman");
  EXPECT_EQ(canonical("lossless:coder=huffman"), "lossless:coder=huffman");
  EXPECT_EQ(canonical("fine:speed=balanced"), "error_bounded:bound=0.03125");
  EXPECT_EQ(canonical("near_lossless:block=4096,coder=huffman,group=64"),
            "near_lossless:group=64,coder=huffman,block=4096");
  EXPECT_EQ(canonical("fine:coder=tans"), "error_bounded:bound=0.03125");
  for (const char* text : {"lossless:speed=fast,coder=tans", "lossless:coder=huffman,speed=fast"}) {
    const Error error = parse_error(text);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(error.message.find("give speed or coder, not both"), std::string::npos);
  }
  EXPECT_EQ(parse_error("lossless:speed=fast,coder=tans").field, "coder");
  EXPECT_EQ(parse_error("lossless:speed=best").message, "speed is best, must be balanced or fast");
  EXPECT_EQ(parse_error("fine:coder=ans").message, "coder is ans, must be tans or huffman");
  EXPECT_EQ(parse_error("int8:speed=fast").code, ErrorCode::kUnknownParameter);
  CodecSpec spec = *CodecSpec::parse("lossless");
  spec.coder = Coder::kNone;
  EXPECT_FALSE(internal::check_spec(spec).ok());
  spec = *CodecSpec::parse("int8");
  spec.coder = Coder::kHuffman;
  EXPECT_FALSE(internal::check_spec(spec).ok());
}

// The caller's rounding mode must not make another step of the same text.
TEST(Spec, NumbersDoNotDependOnTheRoundingMode) {
  constexpr const char* kTexts[] = {"near_lossless:step=0.1", "near_lossless:step=0.00575",
                                    "terngrad:clip=2.7", "error_bounded:bound=0.01",
                                    "error_bounded:bound=1.23456789e-7,scale=absolute"};
  for (const char* const text : kTexts) {
    const CodecSpec expected = *CodecSpec::parse(text);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const Result<CodecSpec> spec = CodecSpec::parse(text);
      const std::string canonical_text = spec.ok() ? spec->to_string() : "";
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(spec.ok()) << text << ", mode " << mode;
      EXPECT_EQ(*spec, expected) << text << ", mode " << mode;
      EXPECT_EQ(canonical_text, expected.to_string()) << mode;
    }
  }
}

TEST(Spec, TextRoundTrips) {
  for (const char* text :
       {"none", "cast:dtype=fp16,block=1048576", "block:bits=4,group=4096,seed=1", "lossless",
        "near_lossless:step=0.00390625", "near_lossless:step=8,group=64",
        "near_lossless:step=0.1,group=4096,block=4096", "near_lossless:step=0.30000000000000004",
        "near_lossless:mantissa=2", "near_lossless:mantissa=16", "lossless:speed=fast", "compso",
        "fine", "coarse:seed=1", "near_lossless:mantissa=1,rounding=stochastic,seed=9",
        "error_bounded:bound=1e-30,scale=absolute,group=64,rounding=nearest,filter=on",
        "error_bounded:bound=0.3,scale=absmax,group=tensor,block=8192"}) {
    const Result<CodecSpec> spec = CodecSpec::parse(text);
    ASSERT_TRUE(spec.ok()) << text << ": " << spec.error().to_string();
    const Result<CodecSpec> again = CodecSpec::parse(spec->to_string());
    ASSERT_TRUE(again.ok()) << spec->to_string();
    EXPECT_EQ(*again, *spec) << text;
    EXPECT_EQ(again->to_string(), spec->to_string());
  }
}

TEST(Spec, UnknownCodecListsAll) {
  for (const char* text : {"", "gzip", "None", "none ", " none", ":block=4096", "near-lossless"}) {
    const Error error = parse_error(text);
    EXPECT_EQ(error.code, ErrorCode::kUnknownCodec) << text;
    EXPECT_EQ(error.field, "codec");
    for (const char* name : {"none", "cast", "block", "lossless", "near_lossless", "error_bounded",
                             "int8", "int4", "fine", "unbiased", "coarse", "compso"}) {
      EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
    }
  }
}

TEST(Spec, UnknownParameterListsThoseOfTheCodec) {
  const Error error = parse_error("near_lossless:stp=1");
  EXPECT_EQ(error.code, ErrorCode::kUnknownParameter);
  EXPECT_EQ(error.field, "stp");
  EXPECT_NE(
      error.message.find("it takes step, mantissa, group, rounding, seed, coder, speed, block"),
      std::string::npos);
  for (const char* text : {"none:group=64", "cast:bits=8", "lossless:step=1", "int8:dtype=bf16",
                           "none:", "none:,", "none:block=4096,", "lossless:=4", "int8: bits=8"}) {
    EXPECT_EQ(parse_error(text).code, ErrorCode::kUnknownParameter) << text;
  }
}

TEST(Spec, OutOfRangeNamesFieldValueAndRange) {
  const Error error = parse_error("block:group=12");
  EXPECT_EQ(error.code, ErrorCode::kOutOfRange);
  EXPECT_EQ(error.field, "group");
  EXPECT_EQ(error.mine, "12");
  EXPECT_EQ(error.message, "group is 12, must be from 8 to 4096, a multiple of 8");
  struct Bad {
    const char* text;
    const char* field;
  };
  for (const Bad& bad : {Bad{"block:bits=7", "bits"},
                         {"block:bits=264", "bits"},
                         {"block:bits=", "bits"},
                         {"block:bits=+8", "bits"},
                         {"block:bits=8 ", "bits"},
                         {"block:bits=-8", "bits"},
                         {"block:group=0", "group"},
                         {"block:group=4104", "group"},
                         {"block:group=4294967304", "group"},
                         {"block:rounding=up", "rounding"},
                         {"block:seed=18446744073709551616", "seed"},
                         {"block:seed=-1", "seed"},
                         {"lossless:group=72", "group"},
                         {"lossless:group=32", "group"},
                         {"lossless:group=8192", "group"},
                         {"none:block=0", "block"},
                         {"none:block=4095", "block"},
                         {"none:block=2097152", "block"},
                         {"cast:dtype=float32", "dtype"},
                         {"cast:dtype=", "dtype"},
                         {"near_lossless:step=0", "step"},
                         {"near_lossless:step=0.0039", "step"},
                         {"near_lossless:step=8.001", "step"},
                         {"near_lossless:step=-1", "step"},
                         {"near_lossless:step=nan", "step"},
                         {"near_lossless:step=inf", "step"},
                         {"near_lossless:step=1e999", "step"},
                         {"near_lossless:step=1x", "step"},
                         {"near_lossless:mantissa=0", "mantissa"},
                         {"near_lossless:mantissa=17", "mantissa"},
                         {"near_lossless:mantissa=262", "mantissa"},
                         {"near_lossless:rounding=stochastic", "rounding"},
                         {"near_lossless:seed=1", "seed"},
                         {"error_bounded:bound=0", "bound"},
                         {"error_bounded:bound=-0.5", "bound"},
                         {"error_bounded:bound=nan", "bound"},
                         {"error_bounded:bound=inf", "bound"},
                         {"error_bounded:bound=1e-310", "bound"},
                         {"error_bounded:bound=0.0039", "bound"},
                         {"error_bounded:bound=8.001", "bound"},
                         {"error_bounded:bound=4.001,rounding=nearest", "bound"},
                         {"error_bounded:bound=x", "bound"},
                         {"error_bounded:scale=range,bound=1.001", "bound"},
                         {"error_bounded:scale=absmax,bound=0.0009", "bound"},
                         {"error_bounded:scale=absolute,bound=1e-310", "bound"},
                         {"error_bounded:scale=absolute,bound=1.8e38", "bound"},
                         {"error_bounded:scale=max", "scale"},
                         {"error_bounded:scale=none", "scale"},
                         {"error_bounded:scale=", "scale"},
                         {"error_bounded:filter=yes", "filter"},
                         {"error_bounded:rounding=up", "rounding"},
                         {"error_bounded:group=row", "group"},
                         {"error_bounded:group=100", "group"},
                         {"near_lossless:group=tensor", "group"}}) {
    const Error found = parse_error(bad.text);
    EXPECT_EQ(found.code, ErrorCode::kOutOfRange) << bad.text;
    EXPECT_EQ(found.field, bad.field) << bad.text;
    EXPECT_NE(found.message.find(bad.field), std::string::npos) << found.message;
  }
}

TEST(Spec, BaselinesHaveTheKeysOfTheirPapers) {
  EXPECT_EQ(canonical("natural:seed=3"), "natural:seed=3");
  EXPECT_EQ(canonical("mxfp8"), "mxfp8:format=e4m3");
  EXPECT_EQ(canonical("mxfp8:format=e5m2"), "mxfp8:format=e5m2");
  EXPECT_EQ(canonical("mxfp4"), "mxfp4");
  EXPECT_EQ(canonical("qsgd"), "qsgd:bits=4");
  EXPECT_EQ(canonical("qsgd:bucket=128,norm=max"), "qsgd:bits=4,bucket=128,norm=max");
  EXPECT_EQ(canonical("qsgd:coding=elias,norm=max"), "qsgd:bits=4,norm=max,coding=elias");
  EXPECT_EQ(canonical("qsgd:coding=elias"), "qsgd:bits=4,coding=elias");
  EXPECT_EQ(canonical("terngrad:clip=2.5"), "terngrad:clip=2.5");
  EXPECT_EQ(canonical("sign:bucket=64"), "sign:bucket=64");
  EXPECT_EQ(canonical("top_k"), "top_k:fraction=0.01,dtype=bf16");
  EXPECT_EQ(canonical("top_k:dtype=float32"), "top_k:fraction=0.01,dtype=fp32");
  EXPECT_EQ(canonical("hadamard:group=512"), "hadamard:bits=4,group=512");
  EXPECT_EQ(canonical("cocktail:sample=5"), "cocktail:sample=5,fraction=0.2,bits=4");
  struct Bad {
    const char* text;
    const char* field;
    const char* range;
  };
  for (const Bad& bad : {Bad{"mxfp8:format=bf16", "format", "float8_e4m3 or float8_e5m2"},
                         {"qsgd:bits=1", "bits", "2, 3, 4, 5, 6, 7 or 8"},
                         {"qsgd:norm=rms", "norm", "l2 or max"},
                         {"qsgd:coding=huffman", "coding", "fixed or elias"},
                         {"qsgd:bucket=0", "bucket", "from 8 to 4096, a multiple of 8"},
                         {"terngrad:clip=0.5", "clip", "0 or from 1 to 8"},
                         {"terngrad:clip=nan", "clip", "0 or from 1 to 8"},
                         {"top_k:fraction=0", "fraction", "from 9.5367431640625e-07 to 1"},
                         {"top_k:fraction=1.5", "fraction", "from 9.5367431640625e-07 to 1"},
                         {"top_k:dtype=fp16", "dtype", "float32 or bfloat16"},
                         {"hadamard:group=96", "group", "a power of two from 16 to 4096"},
                         {"cocktail:sample=0", "sample", "from 1 to 4096"}}) {
    const Error error = parse_error(bad.text);
    EXPECT_EQ(error.code, ErrorCode::kOutOfRange) << bad.text;
    EXPECT_EQ(error.field, bad.field) << bad.text;
    EXPECT_NE(error.message.find(std::string(bad.field) + " is "), std::string::npos);
    EXPECT_NE(error.message.find(bad.range), std::string::npos) << error.message;
  }
}

TEST(Spec, TwiceWithoutValueOrExcludedIsInvalid) {
  for (const char* text : {"none:block=4096,block=4096", "block:bits", "near_lossless:step",
                           "near_lossless:step=1,mantissa=6", "near_lossless:mantissa=6,step=1"}) {
    EXPECT_EQ(parse_error(text).code, ErrorCode::kInvalidArgument) << text;
  }
}

// group=tensor and filter are options of one number: each leaves the other alone.
TEST(Spec, OptionsOfErrorBounded) {
  const CodecSpec tensor = *CodecSpec::parse("error_bounded:group=tensor");
  EXPECT_EQ(tensor.options, BoundOptions::kPerPart);
  EXPECT_EQ(tensor.group, 4096u);
  EXPECT_EQ(CodecSpec::parse("error_bounded:filter=on")->options, BoundOptions::kFilter);
  EXPECT_EQ(CodecSpec::parse("compso:filter=off")->options, BoundOptions::kPerPart);
  EXPECT_EQ(CodecSpec::parse("compso:group=64")->options, BoundOptions::kFilter);
  const Error error = parse_error("error_bounded:bound=9");
  EXPECT_EQ(error.message, "bound is 9, must be from 0.00390625 to 8 for scale rms");
}

TEST(Spec, CheckFindsWhatNoTextCanSay) {
  const auto error_of = [](const char* text, const std::function<void(CodecSpec&)>& change) {
    CodecSpec spec = *CodecSpec::parse(text);
    EXPECT_TRUE(internal::check_spec(spec).ok()) << text;
    change(spec);
    const Status status = internal::check_spec(spec);
    EXPECT_FALSE(status.ok()) << text;
    return status.ok() ? Error{} : status.error();
  };
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.id = CodecId{9}; }).code,
            ErrorCode::kUnknownCodec);
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.group = 64; }).field, "group");
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.bits = 8; }).field, "bits");
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.seed = 1; }).field, "seed");
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.step = -0.0; }).field, "step");
  EXPECT_EQ(error_of("lossless", [](CodecSpec& s) { s.mantissa = 6; }).field, "mantissa");
  EXPECT_EQ(error_of("lossless", [](CodecSpec& s) { s.cast_dtype = DType::kFloat16; }).field,
            "dtype");
  EXPECT_EQ(error_of("lossless", [](CodecSpec& s) { s.rounding = Rounding::kStochastic; }).field,
            "rounding");
  EXPECT_EQ(error_of("int8", [](CodecSpec& s) { s.rounding = Rounding{2}; }).field, "rounding");
  EXPECT_EQ(error_of("cast", [](CodecSpec& s) { s.cast_dtype = DType{0}; }).field, "dtype");
  EXPECT_EQ(error_of("near_lossless", [](CodecSpec& s) { s.mantissa = 6; }).field, "step");
  EXPECT_EQ(error_of("near_lossless", [](CodecSpec& s) { s.step = 0; }).field, "step");
  EXPECT_EQ(error_of("near_lossless", [](CodecSpec& s) { s.bound = 1; }).field, "bound");
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.bound = -0.0; }).field, "bound");
  EXPECT_EQ(error_of("none", [](CodecSpec& s) { s.scale = BoundScale::kRms; }).field, "scale");
  EXPECT_EQ(error_of("int8", [](CodecSpec& s) { s.options = BoundOptions::kFilter; }).field,
            "options");
  EXPECT_EQ(error_of("fine", [](CodecSpec& s) { s.options = BoundOptions{4}; }).field, "options");
  EXPECT_EQ(error_of("fine", [](CodecSpec& s) { s.scale = BoundScale::kNone; }).field, "scale");
  EXPECT_EQ(error_of("fine", [](CodecSpec& s) { s.scale = BoundScale{5}; }).field, "scale");
  EXPECT_EQ(error_of("fine", [](CodecSpec& s) { s.step = 1; }).field, "step");
  EXPECT_EQ(error_of("fine", [](CodecSpec& s) { s.mantissa = 6; }).field, "mantissa");
  EXPECT_EQ(error_of("compso", [](CodecSpec& s) { s.group = 256; }).field, "group");
}

TEST(Spec, TextOfASpecWithoutCodec) {
  CodecSpec spec;
  spec.id = CodecId{9};
  EXPECT_EQ(spec.to_string(), "unknown");
}

TEST(Spec, CheckDtypeNamesWhatTheCodecTakes) {
  EXPECT_TRUE(check_dtype(CodecSpec{}, DType::kInt64).ok());
  const Status status = check_dtype(*CodecSpec::parse("cast"), DType::kFloat16);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupportedDType);
  EXPECT_EQ(status.error().mine, "float16");
  EXPECT_EQ(status.error().message, "codec cast does not take float16; it takes float32, float64");
  EXPECT_FALSE(check_dtype(CodecSpec{}, DType{0}).ok());
}

}  // namespace
}  // namespace gradwire
