#include "codec/coded_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "frame/limits.h"
#include "support/bounds.h"
#include "support/tensor.h"

namespace gradwire::internal {
namespace {

using test::Tensor;

const std::uint64_t kSizes[] = {1,   2,    15,   16,   17,   63,   64,    65,    255,   256,
                                257, 4095, 4096, 4097, 8191, 8192, 32767, 32768, 32769, 100003};

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

CodecSpec lossless(std::uint32_t group = 256) {
  CodecSpec spec;
  spec.id = CodecId::kLossless;
  spec.group = group;
  return spec;
}
CodecSpec with_step(double step, std::uint32_t group = 256) {
  CodecSpec spec;
  spec.id = CodecId::kNearLossless;
  spec.group = group;
  spec.step = step;
  return spec;
}
CodecSpec with_mantissa(std::uint8_t mantissa, std::uint32_t group = 256) {
  CodecSpec spec;
  spec.id = CodecId::kNearLossless;
  spec.group = group;
  spec.mantissa = mantissa;
  return spec;
}

BlockContext context_of(const CodecSpec& spec, DType dtype) {
  BlockContext context;
  context.spec = &spec;
  context.dtype = dtype;
  context.table = coded_table(spec);
  return context;
}

struct Block {
  BlockEntry entry;
  std::vector<std::byte> bytes;
};

class CodedBlockTest : public ::testing::Test {
 protected:
  // Encodes `values`, cut into pieces at `cuts`, at an odd address.
  Block encode(const CodecSpec& spec, const Tensor& values,
               const std::vector<std::uint64_t>& cuts = {}) {
    const std::size_t size = dtype_size(values.dtype);
    std::vector<std::byte> moved(values.bytes.size() + 1);
    std::memcpy(moved.data() + 1, values.bytes.data(), values.bytes.size());
    std::vector<Piece> pieces;
    std::uint64_t at = 0;
    for (const std::uint64_t cut : with_end(cuts, values.count)) {
      pieces.push_back({moved.data() + 1 + at * size, cut - at, 0, 0});
      at = cut;
    }
    Block block;
    block.bytes.resize(16 * values.bytes.size() + 4096);
    const BlockContext context = context_of(spec, values.dtype);
    EXPECT_TRUE(encode_coded_block(context, pieces, *scratch_, block.bytes, &block.entry));
    block.bytes.resize(block.entry.length);
    return block;
  }

  Status decode(const CodecSpec& spec, const BlockEntry& entry, std::span<const std::byte> bytes,
                Tensor* values, const std::vector<std::uint64_t>& cuts = {}) {
    const std::size_t size = dtype_size(values->dtype);
    std::vector<std::byte> moved(values->bytes.size() + 1);
    std::vector<PieceOut> pieces;
    std::uint64_t at = 0;
    for (const std::uint64_t cut : with_end(cuts, values->count)) {
      pieces.push_back({moved.data() + 1 + at * size, cut - at});
      at = cut;
    }
    const BlockContext context = context_of(spec, values->dtype);
    const Status status = decode_coded_block(context, entry, bytes, pieces, *scratch_);
    std::memcpy(values->bytes.data(), moved.data() + 1, values->bytes.size());
    return status;
  }

  Tensor round_trip(const CodecSpec& spec, const Tensor& values,
                    const std::vector<std::uint64_t>& cuts = {}) {
    const Block block = encode(spec, values, cuts);
    Tensor back(values.dtype, values.count);
    const Status status = decode(spec, block.entry, block.bytes, &back, cuts);
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    return back;
  }

  static std::vector<std::uint64_t> with_end(std::vector<std::uint64_t> cuts, std::uint64_t end) {
    cuts.push_back(end);
    return cuts;
  }

  std::unique_ptr<CodedScratch> scratch_ = std::make_unique<CodedScratch>();
};

// Normal values whose groups differ in scale, with special values sprinkled in.
Tensor mixed(DType dtype, std::uint64_t count, std::uint64_t seed) {
  Tensor tensor = test::gradient_like(dtype, count, seed);
  const Tensor specials = test::special_values(dtype);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    if (random() % 97 == 0) {
      tensor.set_bits(i, specials.bits(random() % static_cast<std::size_t>(specials.count)));
    }
    if ((i / 300) % 5 == 4) tensor.set_bits(i, 0);
  }
  return tensor;
}

// Values [begin, end).
Tensor part(const Tensor& tensor, std::uint64_t begin, std::uint64_t end) {
  const std::size_t size = dtype_size(tensor.dtype);
  Tensor result(tensor.dtype, end - begin);
  std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(begin * size), result.bytes.size(),
              result.bytes.begin());
  return result;
}

TEST_F(CodedBlockTest, LosslessKeepsEveryBit) {
  for (const DType dtype : kTypes) {
    for (const std::uint64_t size : kSizes) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " size " + std::to_string(size) +
                   ", seed is the size");
      for (const Tensor& values : {mixed(dtype, size, size), test::random_bits(dtype, size, size),
                                   test::gradient_like(dtype, size, size)}) {
        ASSERT_EQ(round_trip(lossless(), values).bytes, values.bytes);
      }
    }
  }
}

TEST_F(CodedBlockTest, LosslessDropsCommonTrailingZeros) {
  Tensor values = test::gradient_like(DType::kFloat32, 50000, 3);
  for (std::size_t i = 0; i < values.count; ++i) {
    values.set_bits(i, values.bits(i) & 0xFFFF0000u);
  }
  values.set_bits(77, 0x7F800001u);  // NaN: its mantissa does not count
  const Block block = encode(lossless(), values);
  EXPECT_EQ(block.entry.mantissa, 7);
  EXPECT_EQ(block.entry.plane_bytes, 0);
  EXPECT_GE(block.entry.outlier_count, 1u);
  EXPECT_LT(block.bytes.size(), 4 * values.count / 2.7);
  EXPECT_EQ(round_trip(lossless(), values).bytes, values.bytes);
}

TEST_F(CodedBlockTest, LanesFollowTheSize) {
  for (const std::uint64_t size : kSizes) {
    const Block block = encode(with_step(0.00575), test::gradient_like(DType::kFloat32, size, 1));
    EXPECT_EQ(block.entry.lanes, size >= 32768  ? 64
                                 : size >= 8192 ? 32
                                 : size >= 4096 ? 16
                                                : 1)
        << size;
  }
}

// Scale of each group as the encoder must have chosen it.
std::int32_t scale_of_group(const Tensor& values, std::size_t first, std::size_t count, double x) {
  std::vector<std::uint32_t> bits(count);
  std::memcpy(bits.data(), values.bytes.data() + 4 * first, 4 * count);
  const GroupScale scale = group_scale_ref<Float32Format>(
      bits.data(), static_cast<std::uint32_t>(count), scale_factor(x));
  return scale.vanishes || !scale.finite ? -149 : std::clamp(scale.exponent, -149, 127);
}

TEST_F(CodedBlockTest, StepFormKeepsItsBound) {
  for (const double x : {0x1p-8, 0.00575, 0.125, 1.0, 8.0}) {
    for (const std::uint32_t group : {64u, 256u, 4096u}) {
      for (const std::uint64_t size : {17u, 4097u, 33000u}) {
        const std::uint64_t seed = size + group;
        SCOPED_TRACE("X " + std::to_string(x) + " size " + std::to_string(size) + " group " +
                     std::to_string(group) + " seed " + std::to_string(seed));
        for (const Tensor& values :
             {mixed(DType::kFloat32, size, seed), test::random_bits(DType::kFloat32, size, seed)}) {
          const Tensor back = round_trip(with_step(x, group), values);
          for (std::size_t i = 0; i < size; ++i) {
            const double a = values.value(i);
            if (!std::isfinite(a)) {
              ASSERT_EQ(back.bits(i), values.bits(i)) << i;
              continue;
            }
            const std::size_t first = i / group * group;
            const std::size_t count = std::min<std::size_t>(group, size - first);
            if (i == first || i == size - 1) {
              const std::int32_t k = scale_of_group(values, first, count, x);
              for (std::size_t j = first; j < first + count; ++j) {
                if (!std::isfinite(values.value(j))) continue;
                ASSERT_LE(std::abs(back.value(j) - values.value(j)), std::ldexp(0.5, k)) << j;
              }
            }
          }
        }
      }
    }
  }
}

TEST_F(CodedBlockTest, MantissaFormKeepsItsBound) {
  for (const std::uint8_t mantissa : {2, 6, 8, 9, 16}) {
    for (const std::uint64_t size : {65u, 8191u, 40000u}) {
      SCOPED_TRACE("mantissa " + std::to_string(mantissa) + ", seed is the size " +
                   std::to_string(size));
      for (const Tensor& values :
           {mixed(DType::kFloat32, size, size), test::random_bits(DType::kFloat32, size, size)}) {
        const Tensor back = round_trip(with_mantissa(mantissa), values);
        for (std::size_t i = 0; i < size; ++i) {
          const double a = values.value(i);
          if (!std::isfinite(a)) {
            ASSERT_EQ(back.bits(i), values.bits(i)) << i;
          } else if (a == 0) {
            ASSERT_EQ(back.bits(i), 0u) << i;
          } else {
            ASSERT_LE(std::abs(back.value(i) - a), std::ldexp(std::abs(a), -mantissa - 1)) << i;
          }
        }
      }
    }
  }
}

TEST_F(CodedBlockTest, PiecesHaveTheirOwnGroups) {
  const Tensor values = mixed(DType::kFloat32, 40000, 12);
  const std::vector<std::uint64_t> cuts = {1, 3, 300, 556, 9999, 10255, 39990};
  for (const CodecSpec& spec : {lossless(64), with_step(0.01), with_mantissa(7)}) {
    const Tensor back = round_trip(spec, values, cuts);
    // A piece decodes to what it would as a block of its own, but that an escape in one of them,
    // which is exact, need not be one in the other: each chooses its table.
    std::uint64_t at = 0;
    for (const std::uint64_t cut : with_end(cuts, values.count)) {
      Tensor piece(DType::kFloat32, cut - at);
      std::memcpy(piece.bytes.data(), values.bytes.data() + 4 * at, piece.bytes.size());
      const Tensor alone = round_trip(spec, piece);
      for (std::uint64_t i = 0; i < piece.count; ++i) {
        const std::uint64_t here = back.bits(at + i);
        if (here == alone.bits(i)) continue;
        ASSERT_TRUE(here == piece.bits(i) || alone.bits(i) == piece.bits(i)) << cut << ", " << i;
      }
      at = cut;
    }
  }
}

TEST_F(CodedBlockTest, ZerosCostNothing) {
  Tensor values(DType::kFloat32, 100000);
  for (const CodecSpec& spec : {lossless(), with_step(1.0), with_mantissa(6)}) {
    const Block block = encode(spec, values);
    EXPECT_EQ(block.entry.scale_bits, 0);
    EXPECT_EQ(block.entry.word_count, 0u);
    EXPECT_EQ(block.entry.outlier_count, 0u);
    EXPECT_EQ(round_trip(spec, values).bytes, values.bytes);
  }
  // A -0 is kept by lossless and becomes +0 else.
  Tensor negative = values;
  negative.set_bits(70000, 0x80000000u);
  EXPECT_EQ(round_trip(lossless(), negative).bytes, negative.bytes);
  EXPECT_EQ(round_trip(with_step(1.0), negative).bytes, values.bytes);
  EXPECT_EQ(round_trip(with_mantissa(6), negative).bytes, values.bytes);
}

TEST_F(CodedBlockTest, NonFiniteValuesAloneAndAmongOthers) {
  Tensor values(DType::kFloat32, 5000);
  for (std::size_t i = 0; i < values.count; ++i) values.set_bits(i, 0x7FC00000u + i);
  for (const CodecSpec& spec : {lossless(), with_step(0.00575), with_mantissa(6)}) {
    const Block block = encode(spec, values);
    EXPECT_EQ(block.entry.outlier_count, values.count);
    EXPECT_EQ(block.entry.scale_base, 0);
    EXPECT_EQ(block.entry.scale_bits, 1);
    EXPECT_EQ(round_trip(spec, values).bytes, values.bytes);
  }
  Tensor some = test::gradient_like(DType::kFloat32, 5000, 2);
  for (std::size_t i = 256; i < 512; ++i) some.set_bits(i, 0xFF800000u);
  const Tensor back = round_trip(with_step(0.00575), some);
  for (std::size_t i = 256; i < 512; ++i) ASSERT_EQ(back.bits(i), 0xFF800000u);
}

TEST_F(CodedBlockTest, ScalesReachBothEnds) {
  for (const DType dtype : kTypes) {
    const test::FloatLayout layout = test::float_layout(dtype);
    const std::uint64_t sign = std::uint64_t{1} << (layout.exponent + layout.mantissa);
    const std::uint64_t normal = std::uint64_t{1} << layout.mantissa;
    const std::uint64_t infinity = sign - normal;
    for (const std::uint64_t pattern :
         {std::uint64_t{1}, normal - 1, normal, infinity - 1, infinity - normal}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " pattern " + std::to_string(pattern));
      Tensor values(dtype, 9000);
      std::mt19937 random(static_cast<std::uint32_t>(pattern));
      for (std::size_t i = 0; i < values.count; ++i) {
        values.set_bits(i, pattern | ((random() & 1u) != 0 ? sign : 0));
      }
      for (const CodecSpec& spec : {with_step(0x1p-8), with_step(1), with_step(8), with_mantissa(6),
                                    with_mantissa(16), lossless()}) {
        ASSERT_EQ(test::bound_violation(spec, values, round_trip(spec, values), 0), "");
      }
    }
  }
}

// Other types than float32, whose kernels the tests above look at.
TEST_F(CodedBlockTest, EveryTypeKeepsTheBounds) {
  for (const DType dtype : kTypes) {
    for (const std::uint64_t size : {1u, 65u, 4097u, 40000u}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + ", seed is the size " + std::to_string(size));
      for (const Tensor& values :
           {mixed(dtype, size, size), test::random_bits(dtype, size, size)}) {
        for (const CodecSpec& spec : {with_step(0x1p-8), with_step(0.00575, 64), with_step(1),
                                      with_step(8), with_mantissa(2), with_mantissa(16, 64)}) {
          const Tensor back = round_trip(spec, values, {size / 3, size / 2});
          // Pieces begin groups: one after the other.
          std::uint64_t at = 0;
          for (const std::uint64_t end : {size / 3, size / 2, size}) {
            ASSERT_EQ(test::bound_violation(spec, part(values, at, end), part(back, at, end), 0),
                      "");
            at = end;
          }
          for (std::size_t i = 0; i < size; ++i) {
            if (std::isfinite(values.value(i))) continue;
            ASSERT_EQ(back.bits(i), values.bits(i)) << i;
          }
        }
      }
    }
  }
}

TEST_F(CodedBlockTest, SaysWhenTheBlockDoesNotFit) {
  const Tensor values = test::gradient_like(DType::kFloat32, 10000, 5);
  const CodecSpec spec = with_step(0.00575);
  const Block block = encode(spec, values);
  const std::vector<Piece> pieces = {{values.bytes.data(), values.count, 0, 0}};
  const BlockContext context = context_of(spec, DType::kFloat32);
  std::vector<std::byte> out(block.bytes.size());
  BlockEntry entry;
  EXPECT_TRUE(encode_coded_block(context, pieces, *scratch_, out, &entry));
  EXPECT_EQ(out, block.bytes);
  EXPECT_EQ(entry, block.entry);
  EXPECT_FALSE(
      encode_coded_block(context, pieces, *scratch_, std::span(out).first(out.size() - 1), &entry));
}

TEST_F(CodedBlockTest, TablesFollowTheStep) {
  EXPECT_EQ(coded_table(lossless()), 1);
  EXPECT_EQ(coded_table(with_mantissa(6)), 1);
  EXPECT_EQ(coded_table(with_step(0x1p-8)), 16);
  EXPECT_EQ(coded_table(with_step(0.00575)), 17);
  EXPECT_EQ(coded_table(with_step(1.0)), 32);
  EXPECT_EQ(coded_table(with_step(8.0)), 38);
  for (double x = 0x1p-8; x <= 8; x *= 1.01) {
    const int level = static_cast<int>(std::floor(2 * std::log2(x) + 16.5));
    EXPECT_EQ(coded_table(with_step(x)), 16 + std::clamp(level, 0, 22)) << x;
    EXPECT_TRUE(is_coded_table(true, coded_table(with_step(x))));
  }
  EXPECT_TRUE(is_coded_table(false, coded_table(lossless())));
  EXPECT_FALSE(is_coded_table(true, 1));
  EXPECT_FALSE(is_coded_table(true, 15));
  EXPECT_FALSE(is_coded_table(true, 39));
  EXPECT_FALSE(is_coded_table(false, 16));
  EXPECT_FALSE(is_coded_table(false, 0));
}

// A decoder never trusts: each field of the entry by itself, and each section.
TEST_F(CodedBlockTest, NamesWhatIsWrong) {
  const Tensor values = mixed(DType::kFloat32, 5000, 8);
  const CodecSpec spec = lossless();
  const Block block = encode(spec, values);
  Tensor back(DType::kFloat32, values.count);
  const auto message = [&](const BlockEntry& entry, std::span<const std::byte> bytes) {
    const Status status = decode(spec, entry, bytes, &back);
    EXPECT_FALSE(status.ok());
    if (status.ok()) return std::string();
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptBlock);
    return status.error().message;
  };
  const auto changed = [&](auto change) {
    BlockEntry entry = block.entry;
    change(&entry);
    return message(entry, block.bytes);
  };
  EXPECT_EQ(changed([](BlockEntry* e) { e->lanes = 7; }), "coded block: index entry: lanes 7");
  EXPECT_EQ(changed([](BlockEntry* e) { e->scale_bits = 13; }),
            "coded block: index entry: scale_bits 13");
  EXPECT_EQ(changed([](BlockEntry* e) { e->flags = 2; }), "coded block: index entry: flags 2");
  EXPECT_EQ(changed([](BlockEntry* e) { e->mantissa = 24; }),
            "coded block: index entry: mantissa 24");
  EXPECT_EQ(changed([](BlockEntry* e) { e->plane_bytes = 3; }),
            "coded block: index entry: plane_bytes 3");
  EXPECT_EQ(changed([](BlockEntry* e) { e->plane_bytes = 1; }),
            "coded block: index entry: plane_bytes 1");
  EXPECT_EQ(changed([](BlockEntry* e) { e->word_count = 0xFFFFFFFFu; }),
            "coded block: length: the sections need more than the block's bytes");
  EXPECT_EQ(changed([](BlockEntry* e) { e->outlier_count -= 1; }),
            "coded block: length: bytes are left over behind the sections");
  EXPECT_EQ(changed([](BlockEntry* e) { e->scale_base = 250; }).substr(0, 20),
            "coded block: scales:");
  BlockEntry more = block.entry;
  more.outlier_count += 1;
  std::vector<std::byte> longer = block.bytes;
  longer.resize(longer.size() + 4);
  EXPECT_EQ(message(more, longer).substr(0, 22), "coded block: outliers:");
  BlockEntry less = block.entry;
  less.outlier_count -= 1;
  EXPECT_EQ(message(less, std::span(block.bytes).first(block.bytes.size() - 4)).substr(0, 22),
            "coded block: outliers:");
}

TEST_F(CodedBlockTest, OwnTablesAreChecked) {
  const Tensor values = test::gradient_like(DType::kFloat32, 5000, 9);
  const CodecSpec spec = with_step(0.00575);
  const Block block = encode(spec, values);
  BlockEntry entry = block.entry;
  entry.flags = 1;
  const Frequencies* builtin = find_builtin_table(TableKind::kTans, coded_table(spec));
  const auto with_table = [&](const Frequencies& frequencies) {
    std::vector<std::byte> bytes(kTableBytes + block.bytes.size());
    std::memcpy(bytes.data(), frequencies.data(), kTableBytes);
    std::memcpy(bytes.data() + kTableBytes, block.bytes.data(), block.bytes.size());
    return bytes;
  };
  Tensor back(DType::kFloat32, values.count);
  EXPECT_TRUE(decode(spec, entry, with_table(*builtin), &back).ok());
  EXPECT_EQ(back.bytes, round_trip(spec, values).bytes);
  Frequencies wrong = *builtin;
  wrong[18] += 1;
  EXPECT_FALSE(decode(spec, entry, with_table(wrong), &back).ok());
  wrong = *builtin;  // a token without meaning
  wrong[18] -= 1;
  wrong[3] += 1;
  const Status status = decode(spec, entry, with_table(wrong), &back);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "coded block: own table: token 3 does not occur in this form");
}

// 1.0 in the first values of each group, what `other` gives in the rest.
Tensor ones_and(std::uint64_t count, const std::function<float(std::uint64_t)>& other) {
  Tensor values(DType::kFloat32, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    values.set(i, std::bit_cast<std::uint32_t>(i % 256 < 8 ? 1.0f : other(i)));
  }
  return values;
}

TEST_F(CodedBlockTest, OwnTablesOfUnlikeValues) {
  for (const std::uint64_t count : {3000u, 5000u, 10000u, 262144u}) {
    SCOPED_TRACE(count);
    // One token: next to nothing but lane states, scales and the table.
    const Tensor same = ones_and(count, [](std::uint64_t i) { return i % 3 == 0 ? -1.0f : 1.0f; });
    for (const CodecSpec& spec : {lossless(), with_step(1)}) {
      const Block block = encode(spec, same);
      EXPECT_EQ(block.entry.flags, kBlockFlagOwnTable);
      const double rest = 32.0 + 8.0 * block.entry.lanes + static_cast<double>(count) / 256 + 8;
      const double bits = (block.entry.length - rest) * 8 / static_cast<double>(count);
      EXPECT_LT(bits, 1.05) << "a sign and nothing else";
    }
    EXPECT_EQ(round_trip(lossless(), same).bytes, same.bytes);
    // Zeros, 19 in 20.
    const Tensor zeros =
        ones_and(count, [](std::uint64_t i) { return i * 2654435761u % 64 < 2 ? -2.0f : 0.0f; });
    const Block block = encode(lossless(), zeros);
    EXPECT_EQ(block.entry.flags, kBlockFlagOwnTable);
    EXPECT_EQ(round_trip(lossless(), zeros).bytes, zeros.bytes);
    EXPECT_LT(encode(with_step(1), zeros).entry.length * 8, count);
  }
}

// What the sample of 4096 to 8191 values does not see are escapes by the thousand: coded again.
TEST_F(CodedBlockTest, UnforeseenEscapesTakeTheBuiltInTable) {
  const auto seen = [](std::uint64_t i) { return i % 256 / 64 == i / 512 % 4; };
  Tensor values(DType::kFloat32, 8191);
  for (std::uint64_t i = 0; i < values.count; ++i) {
    const float value = seen(i) ? 1.0f : std::ldexp(1.0f, static_cast<int>(i * 7 % 12) - 8);
    values.set(i, std::bit_cast<std::uint32_t>(value));
  }
  for (const CodecSpec& spec : {lossless(), with_mantissa(6)}) {
    const Block block = encode(spec, values);
    EXPECT_EQ(block.entry.flags, 0);
    EXPECT_EQ(block.entry.outlier_count, 0u);
    EXPECT_EQ(round_trip(spec, values).bytes, values.bytes);
  }
}

// Random damage to bytes and entry; run under sanitizers.
TEST_F(CodedBlockTest, DamageIsNeverUnsafe) {
  std::mt19937_64 random(4711);
  SCOPED_TRACE("seed 4711");
  const CodecSpec specs[] = {lossless(), with_step(0.00575), with_step(2.0, 64), with_mantissa(6)};
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const CodecSpec& spec = specs[round % 4];
    const DType dtype = kTypes[random() % 4];
    const Tensor values = mixed(dtype, 1 + random() % 9000, random());
    Block block = encode(spec, values);
    BlockEntry& entry = block.entry;
    const int damage = static_cast<int>(random() % 6);
    if (damage == 0) entry.word_count = static_cast<std::uint32_t>(random());
    if (damage == 1) entry.outlier_count = static_cast<std::uint32_t>(random());
    if (damage == 2) {
      entry.lanes = static_cast<std::uint8_t>(random() % 3 == 0 ? 64 : random());
      entry.plane_bytes = static_cast<std::uint8_t>(random() % 8);
      entry.mantissa = static_cast<std::uint8_t>(random() % 64);
    }
    if (damage == 3) entry.scale_base = static_cast<std::int16_t>(random());
    if (damage == 4) entry.flags = static_cast<std::uint8_t>(random());
    if (damage == 5 || random() % 2 == 0) {
      for (std::uint64_t i = random() % 8 + 1; i > 0; --i) {
        block.bytes[random() % block.bytes.size()] = static_cast<std::byte>(random());
      }
    }
    if (random() % 8 == 0) block.bytes.resize(random() % (block.bytes.size() + 1));
    Tensor back(dtype, values.count);
    const Status status = decode(spec, entry, block.bytes, &back);
    if (!status.ok()) {
      ASSERT_EQ(status.error().code, ErrorCode::kCorruptBlock);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace gradwire::internal
