// Codec `cocktail` (docs/format.md 4.10): key of the sample | number | index list | scales |
// integers.
#include <algorithm>
#include <array>
#include <vector>

#include "codec/coded_block.h"
#include "codec/errors.h"
#include "codec/fixed_block.h"
#include "codec/index_list.h"
#include "codec/piece_groups.h"
#include "codec/piece_walk.h"
#include "core/bit_array.h"
#include "core/byte_reader.h"
#include "core/byte_writer.h"
#include "core/counter_rng.h"
#include "quantize/block_int.h"
#include "quantize/group_sums.h"
#include "quantize/run_noise.h"
#include "quantize/top_magnitudes.h"

namespace gradwire::internal {
namespace {

constexpr std::size_t kScaleBytes = 2;

// The places of a block of `count` values that are in the sample, into `places`; returns their
// number. One in `one_in` of them, as the noise of `key` decides.
std::size_t find_sample(std::uint64_t key, std::uint32_t one_in, std::uint64_t count,
                        std::vector<std::uint32_t>* places) {
  const std::uint32_t limit = 65536 / one_in;
  if (places->size() < count) places->resize(static_cast<std::size_t>(count));
  std::uint32_t* const found = places->data();
  std::size_t sampled = 0;
  RunNoise noise;
  for_each_group(count, RunNoise::kMostValues, [&](std::uint64_t first, std::size_t run) {
    const std::uint16_t* const draws = noise.fill(key, first, run);
    for (std::size_t i = 0; i < run; ++i) {
      found[sampled] = static_cast<std::uint32_t>(first + i);
      sampled += draws[i] < limit;  // the next place overwrites one that is not in the sample
    }
    return true;
  });
  return sampled;
}

// Depends on where the block lies, so that two blocks of a tensor have samples of their own, but
// not on the rank.
std::uint64_t sample_key(const BlockContext& context, const Piece& first) {
  return mix64(noise_key(context.spec->seed, context.step, first.tensor, 0xFFFFFFFFu, 0) +
               first.first_index);
}

bool all_finite(std::span<const Piece> pieces) {
  std::uint32_t largest = 0;
  for (const Piece& piece : pieces) {
    largest = std::max(largest,
                       largest_magnitude_simd(piece.data, static_cast<std::size_t>(piece.count)));
  }
  return largest < kFloat32Inf;
}

std::uint64_t count_kept_groups(std::uint64_t kept, std::uint32_t group) {
  return kept / group + (kept % group != 0 ? 1 : 0);
}

// Collects the kept values of a group, then writes its scale and integers.
class GroupEncoder {
 public:
  GroupEncoder(const BlockContext& context, std::span<std::byte> scales,
               std::span<std::byte> packed)
      : context_(context), scales_(scales), packer_(packed.data(), context.spec->bits) {}

  bool put(const Piece& piece, std::uint64_t offset, std::uint32_t bits) {
    store_le(values_.data() + sizeof(float) * filled_, bits);
    if (is_stochastic()) {
      const std::uint64_t key =
          noise_key(context_.spec->seed, context_.step, piece.tensor, context_.sender,
                    static_cast<std::uint8_t>(context_.phase));
      noise_[filled_] = static_cast<std::uint16_t>(noise16(key, piece.first_index + offset));
    }
    ++filled_;
    return filled_ < context_.spec->group || flush();
  }
  // False if integers cannot carry the group.
  bool flush() {
    if (filled_ == 0) return true;
    const unsigned bits = context_.spec->bits;
    const std::uint16_t scale = block_int_scale(values_.data(), filled_);
    if (scale == kRawGroupScale) return false;
    if (is_stochastic()) {
      block_int_quantize_stochastic(values_.data(), filled_, scale, bits, noise_.data(),
                                    integers_.data());
    } else {
      block_int_quantize_nearest(values_.data(), filled_, scale, bits, integers_.data());
    }
    packer_.append(integers_.data(), filled_);
    filled_ = 0;
    return scales_.write(scale);
  }
  void finish() { packer_.finish(); }

 private:
  bool is_stochastic() const { return context_.spec->rounding == Rounding::kStochastic; }

  const BlockContext& context_;
  ByteWriter scales_;
  BitPacker packer_;
  std::size_t filled_ = 0;
  std::array<std::byte, sizeof(float) * kMostBlockGroup> values_;
  std::array<std::uint16_t, kMostBlockGroup> noise_;
  std::array<std::int8_t, kMostBlockGroup> integers_;
};

}  // namespace

bool encode_cocktail_block(const BlockContext& context, std::span<const Piece> pieces,
                           CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry) {
  const CodecSpec& spec = *context.spec;
  if (!all_finite(pieces)) return false;
  const std::uint64_t key = sample_key(context, pieces[0]);
  const std::size_t sampled =
      find_sample(key, spec.variant, count_values(pieces), &scratch.sample_places);
  if (scratch.sample_values.size() < sampled) scratch.sample_values.resize(sampled);
  PlaceCursor<Piece> cursor(pieces);
  for (std::size_t i = 0; i < sampled; ++i) {
    scratch.sample_values[i] = load_le<std::uint32_t>(cursor.at(scratch.sample_places[i]));
  }
  TopMagnitudes top = top_magnitudes(part_of(spec.step, sampled), [&](auto visit) {
    for (std::size_t i = 0; i < sampled; ++i) visit(scratch.sample_values[i] & kFloat32Magnitude);
  });
  const IndexListLayout layout = index_list_layout(sampled, top.kept);
  ByteWriter writer(out);
  std::span<std::byte> low;
  std::span<std::byte> high;
  std::span<std::byte> scales;
  std::span<std::byte> packed;
  if (!writer.write(key) || !writer.write(static_cast<std::uint32_t>(top.kept)) ||
      !writer.take(layout.low_bytes, &low) || !writer.take(layout.high_bytes, &high) ||
      !writer.take(kScaleBytes * count_kept_groups(top.kept, spec.group), &scales) ||
      !writer.take(bit_array_bytes(top.kept, spec.bits), &packed)) {
    return false;
  }
  std::fill(high.begin(), high.end(), std::byte{0});
  IndexListWriter indices(layout, low, high);
  GroupEncoder groups(context, scales, packed);
  PlaceCursor<Piece> kept(pieces);
  for (std::size_t i = 0; i < sampled; ++i) {
    const std::uint32_t bits = scratch.sample_values[i];
    if (!top.take(bits & kFloat32Magnitude)) continue;
    indices.put(static_cast<std::uint32_t>(i));
    const std::uint64_t place = scratch.sample_places[i];
    kept.at(place);
    if (!groups.put(kept.piece(), kept.offset(place), bits)) return false;
  }
  if (!groups.flush()) return false;
  indices.finish();
  groups.finish();
  entry->length = static_cast<std::uint32_t>(writer.position());
  return true;
}

namespace {

// Values of the kept ones, group after group.
class GroupDecoder {
 public:
  GroupDecoder(const CodecSpec& spec, std::uint64_t kept, std::span<const std::byte> scales,
               std::span<const std::byte> packed)
      : spec_(spec), kept_(kept), scales_(scales), packed_(packed) {}

  // Null, or what is wrong.
  const char* next(std::byte* value) {
    if (at_ == filled_) {
      if (const char* const wrong = fill()) return wrong;
    }
    std::copy_n(values_.data() + sizeof(float) * at_++, sizeof(float), value);
    return nullptr;
  }

 private:
  const char* fill() {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(spec_.group, kept_ - read_));
    const auto scale = load_le<std::uint16_t>(scales_.data() + kScaleBytes * (read_ / spec_.group));
    if (scale < kLeastBlockScale || scale >= kInfScale) return "a scale is out of range";
    unpack_bits(packed_, read_, count, spec_.bits, patterns_.data());
    if (!block_int_dequantize_ref(DType::kFloat32, patterns_.data(), count, scale, spec_.bits,
                                  values_.data())) {
      return "an integer is out of range";
    }
    read_ += count;
    at_ = 0;
    filled_ = count;
    return nullptr;
  }

  const CodecSpec& spec_;
  const std::uint64_t kept_;
  const std::span<const std::byte> scales_;
  const std::span<const std::byte> packed_;
  std::uint64_t read_ = 0;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::array<std::uint8_t, kMostBlockGroup> patterns_;
  std::array<std::byte, sizeof(float) * kMostBlockGroup> values_;
};

}  // namespace

Status decode_cocktail_block(const BlockContext& context, const BlockEntry&,
                             std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                             CodedScratch& scratch) {
  const CodecSpec& spec = *context.spec;
  const std::uint64_t count = count_values(pieces);
  ByteReader reader(bytes);
  std::uint64_t key = 0;
  std::uint32_t kept = 0;
  if (!reader.read(&key) || !reader.read(&kept)) return corrupt_block("shorter than its numbers");
  const std::size_t sampled = find_sample(key, spec.variant, count, &scratch.sample_places);
  if (kept > sampled) return corrupt_block("more values are kept than sampled");
  const IndexListLayout layout = index_list_layout(sampled, kept);
  std::span<const std::byte> low;
  std::span<const std::byte> high;
  std::span<const std::byte> scales;
  std::span<const std::byte> packed;
  if (!reader.take(layout.low_bytes, &low) || !reader.take(layout.high_bytes, &high) ||
      !reader.take(kScaleBytes * count_kept_groups(kept, spec.group), &scales) ||
      !reader.take(bit_array_bytes(kept, spec.bits), &packed) || reader.remaining() != 0) {
    return corrupt_block("is not as long as its sections");
  }
  clear_values(pieces);
  IndexListReader indices(layout, sampled, low, high);
  GroupDecoder groups(spec, kept, scales, packed);
  PlaceCursor<PieceOut> places(pieces);
  for (std::uint32_t i = 0; i < kept; ++i) {
    std::uint32_t index = 0;
    if (!indices.next(&index)) return corrupt_block("an index is out of order");
    std::byte* const value = places.at(scratch.sample_places[index]);
    if (const char* const wrong = groups.next(value)) return corrupt_block(wrong);
  }
  if (!indices.at_end()) return corrupt_block("has more indices than kept values");
  return {};
}

}  // namespace gradwire::internal
