#include "support/random_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <sstream>

#include "frame/limits.h"

namespace gradwire::test {
namespace {

using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t least, std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
}

double uniform(Random& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}

// The fields of codecs 16 and up.
void add_baseline_fields(Random& random, CodecSpec* spec) {
  const internal::CodecLimits& limits = *internal::find_limits(spec->id);
  if (limits.group.multiple == internal::Range::kPowerOfTwo) {
    spec->group = 1u << pick(random, 4, 12);
  } else if (limits.group.most > 0) {
    const std::uint64_t least = limits.group.least / limits.group.multiple;
    const std::uint64_t most = pick(random, 0, 3) == 0 ? limits.group.most : 128;
    spec->group = static_cast<std::uint32_t>(
        limits.group.multiple *
        pick(random, least, std::max<std::uint64_t>(least, most / limits.group.multiple)));
    spec->group = std::min(spec->group, limits.group.most);
  }
  const auto pick_of = [&random](std::uint32_t set) {
    std::uint32_t number = 0;
    while (set != 0 && !internal::has_number(set, number)) {
      number = static_cast<std::uint32_t>(pick(random, 0, 31));
    }
    return number;
  };
  spec->variant = static_cast<std::uint32_t>(
      pick(random, limits.variant.least, std::min(limits.variant.most, 12u)));
  spec->bits = static_cast<std::uint8_t>(pick_of(limits.bits));
  spec->cast_dtype = static_cast<DType>(pick_of(limits.cast_dtypes));
  spec->rounding = static_cast<Rounding>(pick_of(limits.roundings));
  if (spec->rounding == Rounding::kStochastic) spec->seed = random();
  const internal::RealRange& step = limits.quantizer_step;
  if (!step.is_none() && !(step.or_zero && pick(random, 0, 1) == 0)) {
    spec->step = uniform(random, step.least, step.most);
  }
}

void make_error_bounded(Random& random, CodecSpec* spec) {
  spec->scale = static_cast<BoundScale>(pick(random, 1, 4));
  if (pick(random, 0, 2) > 0) {
    spec->rounding = Rounding::kStochastic;
    spec->seed = random();
  }
  spec->options = static_cast<BoundOptions>(pick(random, 0, 3));
  spec->group = has_option(spec->options, BoundOptions::kPerPart)
                    ? 4096
                    : static_cast<std::uint32_t>(64 * pick(random, 1, pick(random, 0, 3) ? 8 : 64));
  const bool nearest = spec->rounding == Rounding::kNearest;
  switch (spec->scale) {
    case BoundScale::kRms:
      spec->bound = std::clamp(std::exp2(uniform(random, -8.5, 3.5)), 0x1p-8, 8.0);
      if (nearest) spec->bound /= 2;
      break;
    case BoundScale::kAbsolute:
      spec->bound =
          std::exp2(pick(random, 0, 3) ? uniform(random, -20, 3) : uniform(random, -126, 127));
      break;
    default:
      spec->bound = std::clamp(std::exp2(uniform(random, -10.5, 0.5)), 0x1p-10, 1.0);
  }
}

CodecSpec random_spec(Random& random, CodecId codec) {
  CodecSpec spec;
  spec.id = codec;
  spec.block_values = static_cast<std::uint32_t>(4096 * pick(random, 1, 12));
  switch (codec) {
    case CodecId::kNone:
      break;
    case CodecId::kCast:
      spec.cast_dtype = pick(random, 0, 1) == 0 ? DType::kFloat16 : DType::kBFloat16;
      break;
    case CodecId::kBlock:
      spec.group = static_cast<std::uint32_t>(8 * pick(random, 1, pick(random, 0, 3) ? 16 : 512));
      spec.bits = static_cast<std::uint8_t>(4 + 2 * pick(random, 0, 2));
      if (pick(random, 0, 1) == 0) {
        spec.rounding = Rounding::kStochastic;
        spec.seed = random();
      }
      break;
    case CodecId::kErrorBounded:
      make_error_bounded(random, &spec);
      break;
    case CodecId::kNearLossless:
      if (pick(random, 0, 1) == 0) {
        spec.mantissa = static_cast<std::uint8_t>(pick(random, 1, 16));
        if (pick(random, 0, 1) == 0) {
          spec.rounding = Rounding::kStochastic;
          spec.seed = random();
        }
      } else {
        spec.step = std::clamp(std::exp2(uniform(random, -8.5, 3.5)), 0x1p-8, 8.0);
      }
      [[fallthrough]];
    case CodecId::kLossless:
      spec.group = static_cast<std::uint32_t>(64 * pick(random, 1, pick(random, 0, 3) ? 8 : 64));
      break;
    default:
      add_baseline_fields(random, &spec);
  }
  if (internal::is_coded(codec)) {
    spec.coder = pick(random, 0, 1) == 0 ? Coder::kTans : Coder::kHuffman;
  }
  return spec;
}

std::vector<std::uint64_t> random_counts(Random& random, std::uint64_t most_values) {
  static constexpr std::uint64_t kBorders[] = {1,   63,   64,   65,   255,  256,
                                               257, 4095, 4096, 8192, 32768};
  std::vector<std::uint64_t> counts;
  std::uint64_t left = pick(random, 0, most_values);
  for (std::uint64_t part = pick(random, 0, 7); part > 0; --part) {
    std::uint64_t count = 0;
    switch (pick(random, 0, 4)) {
      case 0:
        break;  // empty
      case 1:
        count = kBorders[pick(random, 0, std::size(kBorders) - 1)];
        break;
      case 2:
        count = pick(random, 0, 300);
        break;
      default:
        count = pick(random, 0, left);
    }
    counts.push_back(std::min(count, left));
    left -= counts.back();
  }
  return counts;
}

enum class Distribution { kNormal, kHeavyTail, kSparse, kBits, kConstant, kLadder, kSpecials };
constexpr const char* kDistributionNames[] = {"normal",   "heavy tail", "sparse",  "random bits",
                                              "constant", "ladder",     "specials"};

void set_value(Tensor& tensor, std::size_t index, double value) {
  const std::uint32_t single = internal::float32_bits(static_cast<float>(value));
  switch (tensor.dtype) {
    case DType::kFloat64:
      tensor.set(index, value);
      break;
    case DType::kFloat32:
      tensor.set(index, single);
      break;
    case DType::kFloat16:
      tensor.set(index, internal::float16_from_float32_bits(single));
      break;
    default:
      tensor.set(index, internal::bfloat16_from_float32_bits(single));
  }
}

// Powers of two as far as the type goes, and somewhat beyond.
double exponent_range(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1074;
    case DType::kFloat16:
      return 24;
    default:
      return 149;
  }
}

// One value; `unit` is the scale of the run.
double random_value(Random& random, Distribution kind, double unit, double range) {
  std::normal_distribution<double> normal;
  switch (kind) {
    case Distribution::kHeavyTail:
      return unit * normal(random) / std::pow(uniform(random, 1e-6, 1), 2);
    case Distribution::kSparse:
      if (pick(random, 0, 9) > 0) return pick(random, 0, 1) == 0 ? 0.0 : -0.0;
      return unit * normal(random);
    case Distribution::kLadder:
      return std::exp2(uniform(random, -range, range)) * (pick(random, 0, 1) == 0 ? 1 : -1);
    case Distribution::kConstant:
      return unit;
    default:
      return unit * normal(random);
  }
}

Tensor random_tensor(Random& random, DType dtype, std::uint64_t count, Distribution kind) {
  if (!is_compressible(dtype) || kind == Distribution::kBits) {
    return random_bits(dtype, count, random());
  }
  Tensor tensor(dtype, count);
  const double range = exponent_range(dtype);
  const std::uint64_t run = pick(random, 1, 1000);
  const bool quiet = pick(random, 0, 2) > 0;  // few scales, or all that there are
  double unit = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % run == 0)
      unit = std::exp2(quiet ? uniform(random, -20, 3) : uniform(random, -range, range));
    set_value(tensor, i, random_value(random, kind, unit, range));
  }
  if (kind == Distribution::kSpecials) {
    const Tensor specials = special_values(dtype);
    for (std::uint64_t i = pick(random, 0, 9); i < count; i += pick(random, 1, 60)) {
      tensor.set_bits(i, specials.bits(pick(random, 0, specials.count - 1)));
    }
  }
  return tensor;
}

RandomCase make_case(std::uint64_t seed, Random& random, std::uint64_t most_values,
                     const CodecDescription& codec) {
  RandomCase made;
  made.seed = seed;
  made.spec = random_spec(random, codec.id);
  made.dtype = codec.dtypes[pick(random, 0, codec.dtypes.size() - 1)];
  const auto kind = static_cast<Distribution>(pick(random, 0, std::size(kDistributionNames) - 1));
  made.distribution = kDistributionNames[static_cast<int>(kind)];
  for (const std::uint64_t count : random_counts(random, most_values)) {
    made.tensors.push_back(random_tensor(random, made.dtype, count, kind));
  }
  // encode() takes the type from the parts.
  if (made.tensors.empty()) made.tensors.emplace_back(made.dtype, 0);
  return made;
}

}  // namespace

std::string RandomCase::describe() const {
  std::ostringstream text;
  text << "GRADWIRE_TEST_SEED=" << seed << ": " << spec.to_string() << ", " << dtype_name(dtype)
       << ", " << distribution << ", parts of";
  for (const Tensor& tensor : tensors) text << ' ' << tensor.count;
  return text.str();
}

RandomCase make_random_case(std::uint64_t seed, std::uint64_t most_values) {
  Random random(seed);
  const auto& codec = codecs()[pick(random, 0, codecs().size() - 1)];
  return make_case(seed, random, most_values, codec);
}

RandomCase make_random_case(std::uint64_t seed, std::uint64_t most_values, CodecId codec) {
  Random random(seed);
  for (const CodecDescription& description : codecs()) {
    if (description.id == codec) return make_case(seed, random, most_values, description);
  }
  return {};
}

RandomLoop::RandomLoop(double seconds) {
  if (const char* const text = std::getenv("GRADWIRE_TEST_SECONDS")) seconds = std::atof(text);
  const char* const seed = std::getenv("GRADWIRE_TEST_SEED");
  first_seed_ = seed != nullptr ? std::strtoull(seed, nullptr, 10) : std::random_device{}();
  end_ = std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

RandomLoop::~RandomLoop() {
  std::printf("[   SEED   ] GRADWIRE_TEST_SEED=%llu, %llu rounds\n",
              static_cast<unsigned long long>(first_seed_),
              static_cast<unsigned long long>(rounds_));
}

bool RandomLoop::next() {
  if (testing::Test::HasFailure()) return false;
  if (rounds_ > 0 && std::chrono::steady_clock::now() >= end_) return false;
  ++rounds_;
  return true;
}

}  // namespace gradwire::test
