// Error feedback's arithmetic: the plain kernels by example, the vector kernels against them bit
// for bit.
#include "codec/feedback_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codec/accumulate.h"
#include "core/fp_environment.h"
#include "support/float_model.h"

namespace gradwire::internal {
namespace {

using testing::read_value;
using testing::write_value;
using Bytes = std::vector<std::byte>;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMax = std::numeric_limits<float>::max();

Bytes bytes_of(DType dtype, const std::vector<double>& values) {
  Bytes bytes(values.size() * dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) write_value(dtype, bytes.data(), i, values[i]);
  return bytes;
}

TEST(FeedbackKernels, Compensate) {
  const FpEnvironment environment;
  struct Case {
    double x, e, y;
  };
  const Case cases[] = {
      {1, 0.5, 1.5},     {-0.0, 0, -0.0},
      {0, -0.0, 0},      {-0.0, 1, 1},
      {kNan, 1, kNan},   {kInf, -1, kInf},
      {-kInf, 1, -kInf}, {kMax, kMax, kMax},
      {1, -1, 0},        {0x1p-149, 0x1p-149, 0x1p-148},
  };
  for (const auto& [x, e, y] : cases) {
    const Bytes values = bytes_of(DType::kFloat32, {x});
    Bytes residuals = bytes_of(DType::kFloat32, {e});
    Bytes sent(4);
    compensate_ref(DType::kFloat32, {}, values.data(), {residuals.data(), nullptr}, sent.data(), 1);
    EXPECT_EQ(sent, bytes_of(DType::kFloat32, {y})) << x << " + " << e;
    EXPECT_EQ(residuals, bytes_of(DType::kFloat32, {e})) << "not touched";
  }
  // x + e fits float32, but not the type that is sent.
  Bytes residuals = bytes_of(DType::kFloat32, {100});
  Bytes sent(2);
  const Bytes largest = bytes_of(DType::kFloat16, {65504});
  compensate_ref(DType::kFloat16, {}, largest.data(), {residuals.data(), nullptr}, sent.data(), 1);
  EXPECT_EQ(sent, largest);
}

TEST(FeedbackKernels, KeepRest) {
  const FpEnvironment environment;
  struct Case {
    double x, e, decoded, rest;
    float beta = 1;
  };
  const Case cases[] = {
      {1, 0.5, 1, 0.5},         {1, 0.5, 1.5, 0},
      {1, 0.5, 1, 0.5, 0.25f},  // 3/4 of 1/2 and 1/4 of 1/2
      {1, 0.5, 0, 0.75, 0.25f}, {kNan, 1, kNan, 0},
      {kInf, 1, kInf, 0},       {-kInf, 1, -kInf, 0, 0.5f},
      {1, 1, kNan, 0},          {1, 1, kInf, 0, 0.5f},
      {kMax, 0, -kMax, 0},      {kMax, kMax, kMax, 0},  // the sum would be infinite: e is lost
      {-0.0, 0, 0, -0.0},                               // as -0 - 0 is
  };
  for (const Case& one : cases) {
    const Bytes values = bytes_of(DType::kFloat32, {one.x});
    const Bytes decoded = bytes_of(DType::kFloat32, {one.decoded});
    Bytes residuals = bytes_of(DType::kFloat32, {one.e});
    keep_rest_ref(DType::kFloat32, {one.beta, 0}, values.data(), decoded.data(),
                  {residuals.data(), nullptr}, 1);
    EXPECT_EQ(residuals, bytes_of(DType::kFloat32, {one.rest}))
        << one.x << " + " << one.e << " - " << one.decoded << ", beta " << one.beta;
  }
}

// Deep Gradient Compression: u = m u + g, v = v + u; both are 0 where v is sent.
TEST(FeedbackKernels, Momentum) {
  const FpEnvironment environment;
  const FeedbackRule rule{1, 0.5f};
  Bytes residuals = bytes_of(DType::kFloat32, {0, 0, 0, 0});
  Bytes velocities = residuals;
  const FeedbackState state{residuals.data(), velocities.data()};
  const std::vector<double> gradients = {1, 1, kNan, -0.0};
  const Bytes values = bytes_of(DType::kFloat32, gradients);
  Bytes sent(values.size());
  double u = 0;
  double v = 0;
  for (int step = 0; step < 4; ++step) {
    u = 0.5 * u + 1;
    v += u;
    compensate_ref(DType::kFloat32, rule, values.data(), state, sent.data(), 4);
    EXPECT_EQ(sent, bytes_of(DType::kFloat32, {v, v, kNan, -0.0}));
    // The second value is sent in the last step, the others never.
    const bool is_last = step == 3;
    const Bytes decoded = bytes_of(DType::kFloat32, {0, is_last ? v : 0, kNan, 0});
    keep_rest_ref(DType::kFloat32, rule, values.data(), decoded.data(), state, 4);
    const double left = is_last ? 0 : v;
    EXPECT_EQ(read_value(DType::kFloat32, residuals.data(), 0), v);
    EXPECT_EQ(read_value(DType::kFloat32, residuals.data(), 1), left);
    EXPECT_EQ(read_value(DType::kFloat32, velocities.data(), 0), u);
    EXPECT_EQ(read_value(DType::kFloat32, velocities.data(), 1), is_last ? 0 : u);
    for (std::size_t i : {2u, 3u}) {
      EXPECT_EQ(read_value(DType::kFloat32, residuals.data(), i), 0);
      EXPECT_EQ(read_value(DType::kFloat32, velocities.data(), i), 0);
    }
  }
  // What is sent as it is keeps its momentum, as plain SGD does.
  u = 0.5 * u + 1;
  keep_velocities(DType::kFloat32, rule, values.data(), state, 4);
  EXPECT_EQ(residuals, bytes_of(DType::kFloat32, {0, 0, 0, 0}));
  EXPECT_EQ(read_value(DType::kFloat32, velocities.data(), 0), u);
  EXPECT_EQ(read_value(DType::kFloat32, velocities.data(), 1), 1);
}

// ---- vector kernels ----

// Any bits, special values often, and neighbours of one size.
Bytes make_values(DType dtype, std::size_t count, int kind, std::mt19937_64& random) {
  const double specials[] = {0,     -0.0,  kInf,  -kInf,   kNan,    0x1p-149,    -0x1p-126,    kMax,
                             -kMax, 65504, 65520, 0x1p-24, 0x1p-25, 0x1.7FFp-15, 0x1.FEFFp127, 1};
  std::normal_distribution<double> normal;
  Bytes bytes(count * dtype_size(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    if (kind == 0) {
      const std::uint64_t bits = random();
      std::memcpy(bytes.data() + i * dtype_size(dtype), &bits, dtype_size(dtype));
    } else {
      const bool special = random() % (kind == 1 ? 2 : 50) == 0;
      const double scale = kind == 2 ? 1 : 0x1p-20;
      write_value(dtype, bytes.data(), i,
                  special ? specials[random() % 16] : scale * normal(random));
    }
  }
  return bytes;
}

// What is kept is always finite.
Bytes make_kept(DType dtype, std::size_t count, int kind, std::mt19937_64& random) {
  Bytes bytes = make_values(dtype, count, kind, random);
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(read_value(dtype, bytes.data(), i)) || random() % 4 == 0) {
      write_value(dtype, bytes.data(), i, 0);
    }
  }
  return bytes;
}

void expect_same(DType dtype, const FeedbackRule& rule, const Bytes& values, const Bytes& decoded,
                 const Bytes& residuals, const Bytes& velocities, std::size_t count) {
  const std::size_t size = dtype_size(dtype);
  // One byte further on: nothing is aligned.
  const auto shifted = [](const Bytes& bytes) {
    Bytes moved(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
    return moved;
  };
  const Bytes x = shifted(values);
  const Bytes d = shifted(decoded);
  Bytes e[2] = {shifted(residuals), shifted(residuals)};
  Bytes u[2] = {shifted(velocities), shifted(velocities)};
  Bytes sent[2] = {Bytes(count * size + 2, std::byte{7}), Bytes(count * size + 2, std::byte{7})};
  const auto state = [&](int i) {
    return FeedbackState{e[i].data() + 1, rule.momentum != 0 ? u[i].data() + 1 : nullptr};
  };
  compensate_ref(dtype, rule, x.data() + 1, state(0), sent[0].data() + 1, count);
  compensate(dtype, rule, x.data() + 1, state(1), sent[1].data() + 1, count);
  ASSERT_EQ(sent[0], sent[1]);
  keep_rest_ref(dtype, rule, x.data() + 1, d.data() + 1, state(0), count);
  keep_rest(dtype, rule, x.data() + 1, d.data() + 1, state(1), count);
  ASSERT_EQ(e[0], e[1]);
  ASSERT_EQ(u[0], u[1]);
}

TEST(FeedbackKernels, VectorsGiveTheSameBytes) {
  const FpEnvironment environment;
  std::mt19937_64 random(20261201);
  for (const DType dtype : kTypes) {
    const DType kept = *accumulator_dtype(dtype);
    for (const std::size_t count : {0u, 1u, 3u, 7u, 8u, 15u, 31u, 33u, 64u, 1001u, 4096u}) {
      for (int kind = 0; kind < 4; ++kind) {
        for (const FeedbackRule rule : {FeedbackRule{}, FeedbackRule{0.3f, 0},
                                        FeedbackRule{1, 0.9f}, FeedbackRule{0.8f, 0.5f}}) {
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " count " + std::to_string(count) +
                       " kind " + std::to_string(kind) + " beta " + std::to_string(rule.beta) +
                       " momentum " + std::to_string(rule.momentum));
          const Bytes values = make_values(dtype, count, kind, random);
          expect_same(dtype, rule, values, make_values(dtype, count, kind, random),
                      make_kept(kept, count, kind, random), make_kept(kept, count, kind, random),
                      count);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// All patterns of the half types, with residuals that reach every kind of rounding.
TEST(FeedbackKernels, EveryPatternOfTheHalfTypes) {
  const FpEnvironment environment;
  constexpr std::size_t kPatterns = 1u << 16;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    Bytes values(2 * kPatterns);
    for (std::size_t i = 0; i < kPatterns; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(values.data() + 2 * i, &bits, 2);
    }
    for (const double part : {0x1p-9, 0x1.8p-12, -0x1p-8, 0x1p-11, 0x1.0002p-11, 1.0}) {
      std::vector<double> kept(kPatterns);
      for (std::size_t i = 0; i < kPatterns; ++i) {
        const double x = read_value(dtype, values.data(), i);
        kept[i] = std::isfinite(x) ? static_cast<double>(static_cast<float>(part * x)) : 0x1p-24;
        if (!std::isfinite(kept[i])) kept[i] = 0;
      }
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " part " + std::to_string(part));
      const Bytes residuals = bytes_of(DType::kFloat32, kept);
      expect_same(dtype, {}, values, values, residuals, residuals, kPatterns);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gradwire::internal
