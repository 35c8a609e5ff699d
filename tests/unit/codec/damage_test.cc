// Damaged frames of every codec: an error, or with the checksums put right at least no harm.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/codec_cases.h"
#include "support/frame_edit.h"

namespace gradwire {
namespace {

using test::Bytes;
using test::CodecCase;
using test::Tensor;

// Destination with guard bytes around each part.
class Guarded {
 public:
  explicit Guarded(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
      buffers_.emplace_back(kGuard + tensor.bytes.size() + kGuard, kFill);
      views_.push_back({buffers_.back().data() + kGuard, tensor.count, tensor.dtype});
    }
  }
  std::span<const TensorView> views() const { return views_; }
  bool intact() const {
    for (const Bytes& buffer : buffers_) {
      for (std::size_t i = 0; i < kGuard; ++i) {
        if (buffer[i] != kFill || buffer[buffer.size() - 1 - i] != kFill) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kFill{0xD7};
  std::vector<Bytes> buffers_;
  std::vector<TensorView> views_;
};

// A codec as it stores float32 as well as any other type: what differs is the size of a value.
std::vector<CodecCase> damage_cases() {
  std::vector<CodecCase> cases = test::codec_cases();
  std::erase_if(cases, [](const CodecCase& one) {
    return one.spec == "none" && one.dtype != DType::kFloat32 && one.dtype != DType::kUInt8;
  });
  return cases;
}

class DamagedFrame : public ::testing::TestWithParam<CodecCase> {
 protected:
  // Two blocks (of a coded codec: 16 lanes and one), three parts, metadata, and outliers.
  void make_large() { make({4000, 0, 300}); }
  // One block, of which every bit is tried.
  void make_small() { make({290, 0, 30}); }

  void make(const std::vector<std::uint64_t>& counts) {
    CodecSpec spec = test::spec_of(GetParam().spec);
    spec.block_values = 4096;
    for (const std::uint64_t count : counts) {
      tensors_.push_back(test::gradient_like(GetParam().dtype, count, 7 + count));
    }
    if (is_compressible(GetParam().dtype)) {
      const Tensor special = test::special_values(GetParam().dtype);
      for (std::size_t i = 0; i < 8; ++i) tensors_[2].set_bits(i, special.bits(14 + i));
    }
    EncodeOptions options;
    options.metadata = "m";
    frame_ = test::encode_tensors(spec, tensors_, options);
    target_.emplace(tensors_);
  }

  Status decode_frame(std::span<const std::byte> frame) {
    return decode(frame, target_->views(), workspace_);
  }

  void expect_every_flip_refused(std::size_t stride) {
    const std::uint64_t header_length = inspect(frame_)->header_length;
    for (std::size_t bit = 0; bit < 8 * frame_.size(); bit += stride) {
      frame_[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      const Status status = decode_frame(frame_);
      ASSERT_FALSE(status.ok()) << "bit " << bit;
      if (bit / 8 >= header_length) {
        ASSERT_EQ(status.error().code, ErrorCode::kBlockChecksum) << "bit " << bit;
        ASSERT_EQ(status.error().field, "block");
      }
      ASSERT_EQ(verify(frame_).error().code, status.error().code) << "bit " << bit;
      frame_[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    EXPECT_TRUE(decode_frame(frame_).ok());
    EXPECT_TRUE(target_->intact());
  }

  void expect_every_fixed_flip_safe(std::size_t stride) {
    for (std::size_t bit = 0; bit < 8 * frame_.size(); bit += stride) {
      Bytes damaged = frame_;
      damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      test::fix_checksums(damaged);
      const Status status = decode_frame(damaged);
      // The values may be others, or the same where the format ignores the bit.
      if (!status.ok()) {
        ASSERT_NE(status.error().code, ErrorCode::kInternal) << "bit " << bit;
        ASSERT_NE(status.error().code, ErrorCode::kBlockChecksum) << "bit " << bit;
        ASSERT_FALSE(status.error().message.empty()) << "bit " << bit;
      }
    }
    EXPECT_TRUE(target_->intact());
  }

  std::vector<Tensor> tensors_;
  Bytes frame_;
  std::optional<Guarded> target_;
  Workspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(Registry, DamagedFrame, ::testing::ValuesIn(damage_cases()),
                         [](const auto& one) { return test::case_name(one.param); });

// Prime, so that every bit of a byte has its turn.
constexpr std::size_t kLargeStride = 37;

TEST_P(DamagedFrame, EveryTruncationIsTruncated) {
  make_small();
  for (std::size_t length = 0; length < frame_.size(); ++length) {
    // A copy of exactly the bytes, so that a sanitizer sees a read beyond them.
    const Bytes cut(frame_.begin(), frame_.begin() + static_cast<std::ptrdiff_t>(length));
    const Status status = decode_frame(cut);
    ASSERT_FALSE(status.ok()) << length;
    ASSERT_EQ(status.error().code, ErrorCode::kTruncated) << length;
    ASSERT_EQ(verify(cut).error().code, ErrorCode::kTruncated) << length;
    ASSERT_EQ(inspect(cut).error().code, ErrorCode::kTruncated) << length;
  }
  EXPECT_TRUE(target_->intact());
}

TEST_P(DamagedFrame, OneByteMoreIsTrailing) {
  make_small();
  Bytes longer = frame_;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_frame(longer).error().code, ErrorCode::kTrailingBytes);
  EXPECT_EQ(verify(longer).error().code, ErrorCode::kTrailingBytes);
  EXPECT_EQ(inspect(longer).error().code, ErrorCode::kTrailingBytes);
}

TEST_P(DamagedFrame, EveryBitFlipIsAnError) {
  make_small();
  expect_every_flip_refused(1);
}

TEST_P(DamagedFrame, BitFlipsInSeveralBlocksAreErrors) {
  make_large();
  expect_every_flip_refused(kLargeStride);
}

TEST_P(DamagedFrame, EveryBitFlipWithRightChecksumsIsSafe) {
  make_small();
  expect_every_fixed_flip_safe(1);
}

TEST_P(DamagedFrame, BitFlipsInSeveralBlocksWithRightChecksumsAreSafe) {
  make_large();
  expect_every_fixed_flip_safe(kLargeStride);
}

TEST_P(DamagedFrame, RandomDamageWithRightChecksumsIsSafe) {
  make_large();
  const std::uint64_t seed = 20240817;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Bytes damaged = frame_;
    // Half of the rounds aim at header and index, where the lengths are.
    const std::size_t reach = round % 2 == 0 ? damaged.size() : 128 + 24 + 64;
    const std::size_t changes = 1 + random() % 6;
    for (std::size_t change = 0; change < changes; ++change) {
      damaged[random() % reach] = static_cast<std::byte>(random() % 3 == 0 ? 0xFF : random());
    }
    // Keep what would only be refused at once.
    std::memcpy(damaged.data(), frame_.data(), 6);
    std::memcpy(damaged.data() + 72, frame_.data() + 72, 8);
    test::fix_checksums(damaged);
    const Status status = decode_frame(damaged);
    if (!status.ok()) {
      ASSERT_NE(status.error().code, ErrorCode::kInternal) << "round " << round;
    }
  }
  EXPECT_TRUE(target_->intact());
}

TEST_P(DamagedFrame, BlocksOfOtherLengthAreRefused) {
  // One byte moves from one block to the other: the sum stays right.
  make_large();
  for (const int move : {1, -1}) {
    Bytes damaged = frame_;
    const auto change = [move](int sign) {
      return [move, sign](internal::BlockEntry& entry) {
        entry.length = static_cast<std::uint32_t>(static_cast<int>(entry.length) + sign * move);
      };
    };
    test::change_entry(damaged, 0, change(1));
    test::change_entry(damaged, 1, change(-1));
    const Status status = decode_frame(damaged);
    ASSERT_FALSE(status.ok());
    // The index itself knows the length of stored blocks.
    EXPECT_TRUE(status.error().code == ErrorCode::kCorruptBlock ||
                (status.error().code == ErrorCode::kBadHeader && status.error().field == "length"))
        << status.error().to_string();
  }
  EXPECT_TRUE(target_->intact());
}

}  // namespace
}  // namespace gradwire
