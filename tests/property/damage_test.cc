// Damaged frames: every truncation, extension and single-bit flip is an error; with checksums put
// right, damage is an error or other values, never a read or write out of place.

#include <gtest/gtest.h>

#include <algorithm>

#include "support/codec_cases.h"
#include "support/frame_fixup.h"
#include "support/frames.h"
#include "support/golden_files.h"
#include "support/mutate.h"
#include "support/random_case.h"

namespace gradwire::test {
namespace {

constexpr std::size_t kSmall = 2600;  // bytes: every bit of such a frame is flipped
constexpr double kSeconds = 1.0;

ErrorCode code_of(const Result<Bytes>& result) {
  return result.ok() ? ErrorCode{0} : result.error().code;
}

bool is_byte_error(ErrorCode code) {
  return code >= ErrorCode::kTruncated && code <= ErrorCode::kShapeMismatch;
}

// Memory of exactly these bytes, so that a sanitizer sees a read behind them.
Bytes exact(std::span<const std::byte> bytes) {
  Bytes copy(bytes.begin(), bytes.end());
  copy.shrink_to_fit();
  return copy;
}

std::vector<Bytes> small_golden_frames(std::size_t most_bytes) {
  std::vector<Bytes> frames;
  for (const GoldenFrame& golden : golden_frames()) {
    Bytes frame = golden.bytes();
    if (frame.size() <= most_bytes) frames.push_back(std::move(frame));
  }
  return frames;
}

void expect_truncated(std::span<const std::byte> frame, Workspace& workspace) {
  for (std::size_t length = 0; length < frame.size(); ++length) {
    ASSERT_EQ(code_of(decode_frame(frame.first(length), workspace)), ErrorCode::kTruncated)
        << length << " of " << frame.size() << " bytes";
  }
}

void expect_trailing_bytes(std::span<const std::byte> frame, Workspace& workspace) {
  Bytes longer(frame.begin(), frame.end());
  for (int more = 1; more <= 16; ++more) {
    longer.push_back(static_cast<std::byte>(more * 37));
    ASSERT_EQ(code_of(decode_frame(longer, workspace)), ErrorCode::kTrailingBytes) << more;
  }
}

TEST(TruncationTest, EveryPrefixOfGoldenFrames) {
  Workspace workspace;
  for (const GoldenFrame& golden : golden_frames()) {
    SCOPED_TRACE(golden.file);
    const Bytes frame = golden.bytes();
    expect_truncated(frame, workspace);
    expect_trailing_bytes(frame, workspace);
    if (HasFailure()) return;
  }
}

TEST(TruncationTest, EveryPrefixOfRandomFrames) {
  RandomLoop loop(kSeconds);
  Workspace workspace;
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), 3000);
    SCOPED_TRACE(random.describe());
    const Bytes frame = encode_tensors(random.spec, random.tensors);
    expect_truncated(frame, workspace);
    expect_trailing_bytes(frame, workspace);
  }
}

// In memory of exactly its length: the sanitizer would see a read behind the prefix.
TEST(TruncationTest, PrefixesAreNotReadBeyond) {
  Workspace workspace;
  for (const Bytes& frame : small_golden_frames(1000)) {
    for (std::size_t length = 0; length < frame.size(); length += 1 + length / 40) {
      const Bytes prefix = exact(std::span(frame).first(length));
      ASSERT_EQ(code_of(decode_frame(prefix, workspace)), ErrorCode::kTruncated);
      ASSERT_FALSE(frame_length(std::span(prefix).first(std::min<std::size_t>(length, 127))).ok());
    }
  }
}

void expect_flips_refused(Bytes frame, Workspace& workspace) {
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    const std::byte mask = std::byte{1} << static_cast<int>(bit % 8);
    frame[bit / 8] ^= mask;
    const ErrorCode code = code_of(decode_frame(frame, workspace));
    ASSERT_TRUE(is_byte_error(code)) << "bit " << bit << ": " << static_cast<int>(code);
    ASSERT_FALSE(verify(frame).ok()) << "bit " << bit;
    frame[bit / 8] ^= mask;
  }
}

TEST(BitFlipTest, EveryBitOfSmallGoldenFrames) {
  Workspace workspace;
  for (const GoldenFrame& golden : golden_frames()) {
    const Bytes frame = golden.bytes();
    if (frame.size() > kSmall) continue;
    SCOPED_TRACE(golden.file);
    expect_flips_refused(frame, workspace);
    if (HasFailure()) return;
  }
}

TEST(BitFlipTest, EveryBitOfSmallRandomFrames) {
  RandomLoop loop(kSeconds);
  Workspace workspace;
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed(), 300);
    SCOPED_TRACE(random.describe());
    expect_flips_refused(encode_tensors(random.spec, random.tensors), workspace);
  }
}

// Checksums put right: the flip reaches the checks behind them.
void expect_safe(const Bytes& frame, Workspace& workspace) {
  const Result<Bytes> values = decode_frame(frame, workspace, 1u << 21);
  if (values.ok()) {
    ASSERT_TRUE(verify(frame).ok());
    return;
  }
  ASSERT_TRUE(is_byte_error(values.error().code)) << values.error().to_string();
  ASSERT_FALSE(values.error().message.empty() && values.error().code != ErrorCode::kShapeMismatch);
}

TEST(FixedUpTest, EveryBitOfSmallGoldenFrames) {
  Workspace workspace;
  for (const GoldenFrame& golden : golden_frames()) {
    const Bytes frame = golden.bytes();
    if (frame.size() > kSmall / 2) continue;
    SCOPED_TRACE(golden.file);
    for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
      Bytes flipped = frame;
      flipped[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      fix_checksums(flipped);
      expect_safe(flipped, workspace);
    }
    if (HasFailure()) return;
  }
}

TEST(FixedUpTest, MutatedGoldenFrames) {
  const std::vector<Bytes> frames = small_golden_frames(20000);
  ASSERT_FALSE(frames.empty());
  RandomLoop loop(kSeconds);
  Workspace workspace;
  while (loop.next()) {
    SCOPED_TRACE("GRADWIRE_TEST_SEED=" + std::to_string(loop.seed()));
    expect_safe(exact(mutated(frames[loop.seed() % frames.size()], loop.seed())), workspace);
  }
}

TEST(FixedUpTest, MutatedRandomFrames) {
  RandomLoop loop(kSeconds);
  Workspace workspace;
  while (loop.next()) {
    const RandomCase random = make_random_case(loop.seed() / 20, 9000);
    SCOPED_TRACE("GRADWIRE_TEST_SEED=" + std::to_string(loop.seed()));
    expect_safe(exact(mutated(encode_tensors(random.spec, random.tensors), loop.seed())),
                workspace);
  }
}

// A workspace that has seen damage decodes as a new one does.
TEST(FixedUpTest, WorkspaceIsUsableAfterErrors) {
  const std::vector<Bytes> frames = small_golden_frames(20000);
  RandomLoop loop(kSeconds / 2);
  Workspace used;
  while (loop.next()) {
    SCOPED_TRACE("GRADWIRE_TEST_SEED=" + std::to_string(loop.seed()));
    const Bytes& frame = frames[loop.seed() % frames.size()];
    static_cast<void>(decode_frame(mutated(frame, loop.seed()), used, 1u << 21));
    Workspace fresh;
    const Result<Bytes> expected = decode_frame(frame, fresh);
    const Result<Bytes> values = decode_frame(frame, used);
    ASSERT_TRUE(expected.ok() && values.ok());
    ASSERT_EQ(*values, *expected);
  }
}

}  // namespace
}  // namespace gradwire::test
