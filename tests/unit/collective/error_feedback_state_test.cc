// Error feedback's settings, and its state: saved, damaged, loaded, scaled, reset.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/checksum.h"
#include "core/endian.h"
#include "gradwire/collective.h"
#include "gradwire/error_feedback.h"
#include "support/thread_ranks.h"

namespace gradwire {
namespace {

using Bytes = std::vector<std::byte>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Two parameters, of float32 and of float64.
ErrorFeedback make_feedback(const ErrorFeedbackSettings& settings) {
  ErrorFeedback feedback(settings);
  const float first[] = {1, -2, 0x1p-149f, 3e38f};
  const float speeds[] = {5, 6, 7, 8};
  const double second[] = {1e300, -0.0, 4};
  ErrorFeedback::Residual residual{7, 256, {first, 4, DType::kFloat32}, {}};
  if (settings.momentum != 0) residual.velocities = {speeds, 4, DType::kFloat32};
  EXPECT_TRUE(feedback.restore(residual).ok());
  EXPECT_TRUE(feedback.restore({2, 0, {second, 3, DType::kFloat64}, {}}).ok());
  return feedback;
}

Bytes copy_of(const ConstTensorView& view) {
  const auto* bytes = static_cast<const std::byte*>(view.data);
  return {bytes, bytes + view.count * dtype_size(view.dtype)};
}

void expect_same(const ErrorFeedback& a, const ErrorFeedback& b) {
  const auto mine = a.residuals();
  const auto theirs = b.residuals();
  ASSERT_EQ(mine.size(), theirs.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].tensor, theirs[i].tensor);
    EXPECT_EQ(mine[i].first_index, theirs[i].first_index);
    EXPECT_EQ(mine[i].values.dtype, theirs[i].values.dtype);
    EXPECT_EQ(copy_of(mine[i].values), copy_of(theirs[i].values));
    EXPECT_EQ(copy_of(mine[i].velocities), copy_of(theirs[i].velocities));
  }
}

TEST(ErrorFeedbackSettings, RangesAreChecked) {
  EXPECT_TRUE(ErrorFeedback::check({}).ok());
  EXPECT_TRUE(ErrorFeedback::check({0x1p-149f, 1, 0.999f}).ok());
  for (const float beta : {0.0f, -1.0f, 1.0001f, kNan, kInf}) {
    const Status status = ErrorFeedback::check({beta, 0, 0});
    ASSERT_FALSE(status.ok()) << beta;
    EXPECT_EQ(status.error().code, ErrorCode::kOutOfRange);
    EXPECT_EQ(status.error().field, "beta");
  }
  for (const float momentum : {1.0f, -0.1f, kNan, kInf}) {
    const Status status = ErrorFeedback::check({1, 0, momentum});
    ASSERT_FALSE(status.ok()) << momentum;
    EXPECT_EQ(status.error().field, "momentum");
  }
}

TEST(ErrorFeedbackSettings, WrongOnesFailTheCall) {
  const auto communicators = testing::make_communicators(1);
  ErrorFeedback feedback({2, 0, 0});
  CollectiveOptions options;
  options.codec = CodecSpec::parse("none").value();
  options.error_feedback = &feedback;
  float value = 1;
  const Status status = communicators[0]->all_reduce({&value, 1, DType::kFloat32}, {}, options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(status.error().field, "beta");
  EXPECT_EQ(status.error().mine, "2.000000");
}

TEST(ErrorFeedbackState, RoundTrip) {
  for (const ErrorFeedbackSettings settings :
       {ErrorFeedbackSettings{}, ErrorFeedbackSettings{0.5f, 1024, 0.9f}}) {
    const ErrorFeedback feedback = make_feedback(settings);
    const Result<Bytes> bytes = feedback.save();
    ASSERT_TRUE(bytes.ok());
    const std::size_t values = settings.momentum != 0 ? 2 * (16 + 24) : 16 + 24;
    EXPECT_EQ(bytes->size(), 32 + 2 * 24 + values + 8);
    ErrorFeedback loaded(settings);
    ASSERT_TRUE(loaded.load(*bytes).ok());
    expect_same(feedback, loaded);
    EXPECT_EQ(loaded.save().value(), *bytes);
    // In place of what there was.
    const ErrorFeedback empty(settings);
    ASSERT_TRUE(loaded.load(empty.save().value()).ok());
    EXPECT_TRUE(loaded.residuals().empty());
  }
}

void expect_refused(const ErrorFeedback& into, const Bytes& bytes, ErrorCode code,
                    std::string_view field) {
  ErrorFeedback target(into.settings());
  ASSERT_TRUE(target.load(into.save().value()).ok());
  const Status status = target.load(bytes);
  ASSERT_FALSE(status.ok()) << field;
  EXPECT_EQ(error_name(status.error().code), error_name(code)) << status.error().to_string();
  EXPECT_EQ(status.error().field, field);
  expect_same(target, into);
}

Bytes with_hash(Bytes bytes) {
  const std::size_t end = bytes.size() - 8;
  internal::store_le(bytes.data() + end, internal::hash64(std::span(bytes).first(end)));
  return bytes;
}

template <typename T>
Bytes with(Bytes bytes, std::size_t at, T value) {
  internal::store_le(bytes.data() + at, value);
  return with_hash(std::move(bytes));
}

TEST(ErrorFeedbackState, DamagedBytesAreRefused) {
  const ErrorFeedback feedback = make_feedback({});
  const Bytes bytes = feedback.save().value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ErrorFeedback target;
    EXPECT_FALSE(target.load(std::span(bytes).first(size)).ok()) << size;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes flipped = bytes;
    flipped[i] ^= std::byte{0x10};
    ErrorFeedback target;
    EXPECT_FALSE(target.load(flipped).ok()) << i;
    EXPECT_TRUE(target.residuals().empty());
  }
  expect_refused(feedback, {}, ErrorCode::kTruncated, "");
  expect_refused(feedback, with(bytes, 0, 1u), ErrorCode::kBadMagic, "magic");
  expect_refused(feedback, with(bytes, 4, 2u), ErrorCode::kUnsupportedVersion, "version");
  expect_refused(feedback, with(bytes, 8, 0.5f), ErrorCode::kInvalidArgument, "beta");
  expect_refused(feedback, with(bytes, 8, kNan), ErrorCode::kInvalidArgument, "beta");
  expect_refused(feedback, with(bytes, 12, 0.5f), ErrorCode::kInvalidArgument, "momentum");
  expect_refused(feedback, with(bytes, 16, std::uint64_t{3}), ErrorCode::kInvalidArgument,
                 "reset_interval");
  expect_refused(feedback, with(bytes, 24, std::uint64_t{3}), ErrorCode::kTruncated, "");
  expect_refused(feedback, with(bytes, 24, std::uint64_t{1}), ErrorCode::kTrailingBytes, "");
  expect_refused(feedback, with(bytes, 24, ~std::uint64_t{0}), ErrorCode::kTruncated, "");
  // The first part: number at 32, type at 36, index at 40, values at 48, the values from 56.
  expect_refused(feedback, with(bytes, 36, 3u), ErrorCode::kBadHeader, "dtype");
  expect_refused(feedback, with(bytes, 36, 0x101u), ErrorCode::kBadHeader, "dtype");
  expect_refused(feedback, with(bytes, 48, std::uint64_t{0}), ErrorCode::kBadHeader, "values");
  expect_refused(feedback, with(bytes, 48, ~std::uint64_t{0}), ErrorCode::kTruncated, "");
  expect_refused(feedback, with(bytes, 48, std::uint64_t{1} << 61), ErrorCode::kTruncated, "");
  expect_refused(feedback, with(bytes, 56, std::numeric_limits<double>::infinity()),
                 ErrorCode::kInvalidArgument, "values");
  Bytes unhashed = bytes;
  unhashed[60] ^= std::byte{1};
  expect_refused(feedback, unhashed, ErrorCode::kBlockChecksum, "hash");
}

TEST(ErrorFeedbackState, VelocitiesMustFit) {
  const float values[] = {1, 2};
  const double doubles[] = {1, 2};
  const float nan[] = {1, kNan};
  ErrorFeedback without;
  EXPECT_EQ(without.restore({0, 0, {values, 2, DType::kFloat32}, {values, 2, DType::kFloat32}})
                .error()
                .field,
            "velocities");
  ErrorFeedback feedback({1, 0, 0.5f});
  for (const ConstTensorView& wrong :
       {ConstTensorView{values, 1, DType::kFloat32}, ConstTensorView{doubles, 2, DType::kFloat64},
        ConstTensorView{nan, 2, DType::kFloat32}}) {
    const Status status = feedback.restore({0, 0, {values, 2, DType::kFloat32}, wrong});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().field, "velocities");
  }
  ASSERT_TRUE(feedback.restore({0, 0, {values, 2, DType::kFloat32}, {}}).ok());
  EXPECT_EQ(copy_of(feedback.residuals()[0].velocities), Bytes(8));
}

// As when a loss scale changes.
TEST(ErrorFeedbackState, Scale) {
  ErrorFeedback feedback = make_feedback({1, 0, 0.5f});
  ASSERT_TRUE(feedback.scale(2).ok());
  const auto kept = feedback.residuals();
  ASSERT_EQ(kept.size(), 2u);
  const float first[] = {2, -4, 0x1p-148f, 0};  // the last one was too large
  const float speeds[] = {10, 12, 14, 16};
  const double second[] = {2e300, -0.0, 8};
  EXPECT_EQ(copy_of(kept[0].values), copy_of({second, 3, DType::kFloat64}));
  EXPECT_EQ(copy_of(kept[1].values), copy_of({first, 4, DType::kFloat32}));
  EXPECT_EQ(copy_of(kept[1].velocities), copy_of({speeds, 4, DType::kFloat32}));
  for (const double factor : {0.0, -1.0, static_cast<double>(kNan), static_cast<double>(kInf)}) {
    const Status status = feedback.scale(factor);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().field, "factor");
  }
  ErrorFeedback empty;
  EXPECT_TRUE(empty.scale(0.5).ok());
}

// After every third step the residuals are 0, and not before.
TEST(ErrorFeedbackState, ResetInterval) {
  const auto communicators = testing::make_communicators(2);
  std::vector<ErrorFeedback> feedbacks;
  for (int rank = 0; rank < 2; ++rank) feedbacks.emplace_back(ErrorFeedbackSettings{1, 3, 0});
  for (std::uint64_t step = 0; step < 8; ++step) {
    testing::run_ranks(2, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      std::vector<float> values(600, 1 + 0x1p-10f);
      CollectiveOptions options;
      options.codec = CodecSpec::parse("cast:dtype=bf16").value();
      options.error_feedback = &feedbacks[r];
      options.step = step;
      ASSERT_TRUE(
          communicators[r]->all_reduce({values.data(), 600, DType::kFloat32}, {}, options).ok());
    });
    const ConstTensorView kept = feedbacks[0].residuals().at(0).values;
    const float last = static_cast<const float*>(kept.data)[599];
    EXPECT_EQ(last != 0, step % 3 != 2) << step;
  }
}

// Plain momentum, as SGD has it, where a rank owns the values or the codec sends nothing else.
TEST(ErrorFeedbackState, MomentumOfTheOwner) {
  const auto communicators = testing::make_communicators(1);
  ErrorFeedback feedback({1, 0, 0.5f});
  double momentum = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    float value = 1;
    momentum = 0.5 * momentum + 1;
    CollectiveOptions options;
    options.codec = CodecSpec::parse("none").value();
    options.error_feedback = &feedback;
    options.step = step;
    ASSERT_TRUE(communicators[0]->all_reduce({&value, 1, DType::kFloat32}, {}, options).ok());
    EXPECT_EQ(value, momentum);
  }
}

}  // namespace
}  // namespace gradwire
