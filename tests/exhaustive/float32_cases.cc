// The float32 kernels over all patterns. The models work on the values in binary64, where all that
// they compute is exact, and share no code with the kernels.
#include <array>
#include <bit>
#include <cstring>

#include "core/fp_environment.h"
#include "core/simd_target.h"
#include "exhaustive/cases.h"
#include "quantize/float32_simd.h"

namespace gradwire::test {
namespace {

using internal::MantissaSplit;
using internal::TokenRange;

constexpr std::uint32_t kSign = 0x80000000u, kInfinity = 0x7F800000u;
constexpr std::uint32_t kMostQ = 2047;
constexpr auto kCount = static_cast<std::uint32_t>(kChunkValues);

using Patterns = std::array<std::uint32_t, kChunkValues>;

double value_of(std::uint32_t pattern) {
  return static_cast<double>(std::bit_cast<float>(pattern));
}
bool is_finite(std::uint32_t pattern) { return (pattern & kInfinity) != kInfinity; }
// 2^n for normal results.
double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52);
}
// To an integer, nearest even; |x| < 2^51.
double round_to_integer(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// What a kernel makes of a chunk, and the values that come back: escapes as they were.
struct Coded {
  std::array<std::uint8_t, kChunkValues> tokens;
  std::array<std::uint16_t, kChunkValues> lane_bits;
  std::array<std::byte, 2 * kChunkValues> plane;
  Patterns values;
  std::uint32_t escapes = 0;
  bool valid = false;

  void put_escapes_back(const Patterns& given) {
    for (std::size_t i = 0; i < kChunkValues; ++i) {
      if (tokens[i] == internal::kStepEscape) values[i] = given[i];
    }
  }
};
static_assert(internal::kStepEscape == internal::kExponentEscape);

std::string difference(const Coded& plain, const Coded& vector, std::string_view target,
                       std::size_t plane_bytes) {
  const char* what = nullptr;
  if (plain.tokens != vector.tokens) what = "tokens";
  if (plain.lane_bits != vector.lane_bits) what = "lane bits";
  if (std::memcmp(plain.plane.data(), vector.plane.data(), plane_bytes * kChunkValues) != 0) {
    what = "plane";
  }
  if (plain.values != vector.values) what = "decoded values";
  if (plain.escapes != vector.escapes) what = "number of escapes";
  if (plain.valid != vector.valid) what = "validity";
  if (what == nullptr) return {};
  return std::string(target) + ": " + what + " differ from those of the plain kernel";
}

std::string count_violation(const Coded& coded) {
  if (!coded.valid) return "the decoder refuses what the encoder made";
  std::uint32_t escapes = 0;
  for (const std::uint8_t token : coded.tokens) {
    if (token == internal::kStepEscape) ++escapes;
  }
  return escapes == coded.escapes ? "" : "the number of escapes is not that of the tokens";
}

// ---- step form ----

// Every value: on the grid of 2^k, nearest, ties to even, +0 for zero, or an escape where that is
// not possible; and the bound.
std::string step_violation(int k, const Patterns& given, const Coded& coded) {
  const double up = power_of_two(-k), step = power_of_two(k);
  for (std::size_t i = 0; i < kChunkValues; ++i) {
    const bool escaped = coded.tokens[i] == internal::kStepEscape;
    const double x = value_of(given[i]);
    const double q = round_to_integer(x * up);
    const double size = q < 0 ? -q : q;
    const bool representable = is_finite(given[i]) && size <= kMostQ && size * step < 0x1p128;
    if (escaped == representable) {
      return finding(given[i], coded.values[i], escaped ? "needless escape" : "must escape");
    }
    if (escaped) continue;
    const double y = value_of(coded.values[i]);
    const double error = x < y ? y - x : x - y;
    if (!(error <= step / 2)) return finding(given[i], coded.values[i], "beyond half a step");
    if (y != q * step) return finding(given[i], coded.values[i], "not the nearest");
    if (q == 0 && coded.values[i] != 0) return finding(given[i], coded.values[i], "not +0");
  }
  return count_violation(coded);
}

struct StepCheck {
  int k;
  std::vector<std::string_view> targets = internal::simd_targets();
  Patterns given{};
  Coded plain{}, vector{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    float32_chunk(chunk, given);
    plain.escapes = internal::quantize_step_ref(given.data(), kCount, k, kMostQ,
                                                plain.tokens.data(), plain.lane_bits.data());
    plain.valid = internal::dequantize_step_ref(plain.tokens.data(), plain.lane_bits.data(), kCount,
                                                k, plain.values.data());
    plain.put_escapes_back(given);
    if (std::string text = step_violation(k, given, plain); !text.empty()) return text;
    for (const std::string_view target : targets) {
      internal::use_simd_target(target);
      vector.escapes = internal::quantize_step_simd(given.data(), kCount, k, kMostQ,
                                                    vector.tokens.data(), vector.lane_bits.data());
      vector.valid = internal::dequantize_step_simd(vector.tokens.data(), vector.lane_bits.data(),
                                                    kCount, k, vector.values.data());
      vector.put_escapes_back(given);
      if (std::string text = difference(plain, vector, target, 0); !text.empty()) return text;
    }
    return {};
  }
};

// ---- exponent form ----

// T such that most values of the chunk have a token, at another place in their range each time.
std::int32_t top_of(std::uint64_t chunk) {
  const auto turn = static_cast<std::int32_t>((chunk * 0x9E3779B97F4A7C15u >> 32) % 15);
  const std::int32_t top = first_field(chunk) + 15 + turn;
  return top < 255 ? top : 255;
}

// x rounded to `mantissa` bits, for a normal x.
double rounded_mantissa(double x, std::int32_t field, std::uint32_t mantissa) {
  const int exponent = field - 127 - static_cast<int>(mantissa);
  return round_to_integer(x * power_of_two(-exponent)) * power_of_two(exponent);
}

// mantissa = 23: lossless.
std::string exponent_violation(std::uint32_t mantissa, std::int32_t top, const Patterns& given,
                               const Coded& coded) {
  const bool lossless = mantissa == 23;
  const double relative = power_of_two(-static_cast<int>(mantissa) - 1);
  for (std::size_t i = 0; i < kChunkValues; ++i) {
    const std::uint32_t pattern = given[i];
    const auto field = static_cast<std::int32_t>((pattern & ~kSign) >> 23);
    const bool escaped = coded.tokens[i] == internal::kExponentEscape;
    const bool zero = (pattern & ~kSign) == 0;
    std::uint32_t expected = lossless ? pattern : 0;
    bool representable = is_finite(pattern) && (zero || lossless || field > 0);
    if (!lossless && !zero && representable) {
      const double y = rounded_mantissa(value_of(pattern), field, mantissa);
      representable = y < 0x1p128 && y > -0x1p128;
      if (representable) expected = std::bit_cast<std::uint32_t>(static_cast<float>(y));
    }
    const std::int32_t token = top - static_cast<std::int32_t>((expected & ~kSign) >> 23);
    if (!zero) representable = representable && token >= 0 && token <= 29;
    if (escaped == representable) {
      return finding(pattern, coded.values[i], escaped ? "needless escape" : "must escape");
    }
    if (escaped) continue;
    const double x = value_of(pattern), y = value_of(coded.values[i]);
    const double error = x < y ? y - x : x - y;
    const double bound = lossless ? 0 : (x < 0 ? -x : x) * relative;
    if (!(error <= bound)) return finding(pattern, coded.values[i], "beyond the bound");
    if (coded.values[i] != expected) return finding(pattern, coded.values[i], "not the nearest");
  }
  return count_violation(coded);
}

struct ExponentCheck {
  std::uint32_t mantissa;
  std::vector<std::string_view> targets = internal::simd_targets();
  Patterns given{}, rounded{};
  Coded plain{}, vector{};

  std::string operator()(std::uint64_t chunk) {
    const internal::FpEnvironment environment;
    const MantissaSplit split = internal::split_mantissa(mantissa);
    const TokenRange range{0, internal::kExponentTokenMax};
    const std::int32_t top = top_of(chunk);
    float32_chunk(chunk, given);
    rounded = given;
    if (mantissa < 23)
      internal::round_mantissa_ref<internal::Float32Format>(rounded.data(), kCount, mantissa);
    plain.escapes = internal::quantize_exponent_ref<internal::Float32Format>(
        rounded.data(), kCount, top, split, range, plain.tokens.data(), plain.lane_bits.data(),
        plain.plane.data());
    plain.valid = internal::dequantize_exponent_ref<internal::Float32Format>(
        plain.tokens.data(), plain.lane_bits.data(), plain.plane.data(), kCount, top, split,
        plain.values.data());
    plain.put_escapes_back(given);
    std::string text = exponent_violation(mantissa, top, given, plain);
    for (std::size_t t = 0; t < targets.size() && text.empty(); ++t) {
      text = target_violation(targets[t], top, split, range);
    }
    return text;
  }

  std::string target_violation(std::string_view target, std::int32_t top, MantissaSplit split,
                               TokenRange range) {
    internal::use_simd_target(target);
    const std::uint32_t* source = given.data();
    if (mantissa < 23) {
      internal::round_mantissa_simd(given.data(), kCount, mantissa, rounded.data());
      source = rounded.data();
    }
    vector.escapes =
        internal::quantize_exponent_simd(source, kCount, top, split, range, vector.tokens.data(),
                                         vector.lane_bits.data(), vector.plane.data());
    vector.valid = internal::dequantize_exponent_simd(vector.tokens.data(), vector.lane_bits.data(),
                                                      vector.plane.data(), kCount, top, split,
                                                      vector.values.data());
    vector.put_escapes_back(given);
    return difference(plain, vector, target, split.plane_bytes);
  }
};

template <typename Check>
ExhaustiveCase float32_case(std::string name, std::string promise, Check check) {
  return {.name = std::move(name),
          .promise = std::move(promise),
          .chunks = kFloat32Chunks,
          .patterns = kChunkValues,
          .all_targets = true,
          .make_check = [check] { return ChunkCheck(check); }};
}

}  // namespace

void add_float32_cases(std::vector<ExhaustiveCase>* cases) {
  for (const int k : {-149, -141, -126, -20, 0, 100, 112, 120}) {
    cases->push_back(float32_case("float32 step 2^" + std::to_string(k), "N1", StepCheck{.k = k}));
  }
  for (const std::uint32_t mantissa : {2u, 6u, 10u, 16u}) {
    cases->push_back(float32_case("float32 mantissa " + std::to_string(mantissa), "N1",
                                  ExponentCheck{.mantissa = mantissa}));
  }
  cases->push_back(float32_case("float32 lossless", "N4", ExponentCheck{.mantissa = 23}));
}

}  // namespace gradwire::test
