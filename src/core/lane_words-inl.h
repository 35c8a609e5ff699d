// The lane operations of core/lane_ops-inl.h on vectors of 16 or 32 bytes (SSE4, AVX2, AVX-512
// without VBMI2, NEON), which have no shift by another number in each lane, no look-up in 128
// bytes, no compress and no expand of words:
// * a shift is a multiplication by a power of two, the low or the high half of the product;
// * what fits into a byte (states, positions, tokens) is kept as bytes, ByteLanes: half the
// look-ups;
// * a table of more than 16 bytes is looked up in pieces, see ByteTable;
// * 8 words are compressed or expanded by a shuffle that a table of 256 gives for their mask.
// Only where GRADWIRE_LANE_VECTORS.
#if defined(GRADWIRE_CORE_LANE_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_LANE_WORDS_INL_H_
#undef GRADWIRE_CORE_LANE_WORDS_INL_H_
#else
#define GRADWIRE_CORE_LANE_WORDS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if GRADWIRE_LANE_VECTORS

namespace hn = hwy::HWY_NAMESPACE;

// ---- vectors ----

using D8 = hn::CappedTag<std::uint8_t, 32>;
using D16 = hn::Repartition<std::uint16_t, D8>;
using D32 = hn::Repartition<std::uint32_t, D8>;
using DI8 = hn::Repartition<std::int8_t, D8>;
using DI16 = hn::Repartition<std::int16_t, D8>;
using DF32 = hn::Repartition<float, D8>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using Block8 = hn::FixedTag<std::uint8_t, 16>;
using Block16 = hn::FixedTag<std::uint16_t, 8>;

// Vectors of 32 bytes, of 32 words and of 16 values.
constexpr std::size_t kVectorBytes = hn::MaxLanes(D8());
constexpr std::size_t kByteVectors = 32 / kVectorBytes;
constexpr std::size_t kWordVectors = 2 * kByteVectors;
constexpr std::size_t kVectorWords = kVectorBytes / 2;
constexpr std::size_t kVectorWides = kVectorBytes / 4;
static_assert(kVectorBytes == 16 * GRADWIRE_LANE_BLOCKS);

// Lane i is element i of the words together.
struct Lanes {
  V16 v[kWordVectors];
};
// Ones or zeros throughout each lane.
struct LaneMask {
  V16 v[kWordVectors];
};
// Bytes of 32 lanes, in the order that narrowing two vectors of words block by block gives: with
// 32 bytes to a vector lanes 0-7, 16-23, 8-15, 24-31, else as they come.
struct ByteLanes {
  V8 v[kByteVectors];
};
struct ByteMask {
  V8 v[kByteVectors];
};
// Value i of the half row is element i of `first`, value 16 + i of `second`.
struct WidePair {
  V32 first[kWordVectors];
  V32 second[kWordVectors];
};

// The statement behind it for each i below `count`: vectors of lanes, blocks, pieces of a table.
#define GRADWIRE_EACH(count) for (std::size_t i = 0; i < (count); ++i)

HWY_INLINE V16 as_words(V32 v) { return hn::BitCast(D16(), v); }
HWY_INLINE V32 as_wides(V16 v) { return hn::BitCast(D32(), v); }

// ---- words ----

HWY_INLINE Lanes load_lanes(const void* from) {
  Lanes r;
  const auto* words = static_cast<const std::uint16_t*>(from);
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::LoadU(D16(), words + i * kVectorWords);
  return r;
}
HWY_INLINE void store_lanes(const Lanes& v, void* to) {
  auto* words = static_cast<std::uint16_t*>(to);
  GRADWIRE_EACH(kWordVectors) hn::StoreU(v.v[i], D16(), words + i * kVectorWords);
}
HWY_INLINE Lanes set_lanes(int x) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Set(D16(), static_cast<std::uint16_t>(x));
  return r;
}
HWY_INLINE Lanes zero_lanes() { return set_lanes(0); }
HWY_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Add(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE Lanes sub(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Sub(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE Lanes and_(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::And(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE Lanes or_(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Or(a.v[i], b.v[i]);
  return r;
}
// Low and high 16 bits of the products.
HWY_INLINE Lanes mul_low(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Mul(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE Lanes mul_high(const Lanes& a, const Lanes& b) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::MulHigh(a.v[i], b.v[i]);
  return r;
}
template <int kBits>
HWY_INLINE Lanes shift_right(const Lanes& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::ShiftRight<kBits>(v.v[i]);
  return r;
}
// The sign, bit 15, comes in from above.
template <int kBits>
HWY_INLINE Lanes shift_right_signed(const Lanes& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::BitCast(D16(), hn::ShiftRight<kBits>(hn::BitCast(DI16(), v.v[i])));
  }
  return r;
}
template <int kBits>
HWY_INLINE Lanes shift_left(const Lanes& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::ShiftLeft<kBits>(v.v[i]);
  return r;
}
// Bits of `yes` where `mask` has ones, else of `no`.
HWY_INLINE Lanes select_bits(const Lanes& mask, const Lanes& yes, const Lanes& no) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::Or(hn::And(mask.v[i], yes.v[i]), hn::AndNot(mask.v[i], no.v[i]));
  }
  return r;
}
// a | (b & c)
HWY_INLINE Lanes or_and(const Lanes& a, const Lanes& b, const Lanes& c) {
  return or_(a, and_(b, c));
}

// Bit i: bit 7 of byte i.
HWY_INLINE std::uint32_t byte_signs(V8 v) {
#if GRADWIRE_LANE_BLOCKS == 2
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(v.raw));
#elif HWY_ARCH_X86
  return static_cast<std::uint32_t>(_mm_movemask_epi8(v.raw));
#else
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                         1, 2, 4, 8, 16, 32, 64, 128};
  const V8 signs = hn::BitCast(D8(), hn::BroadcastSignBit(hn::BitCast(DI8(), v)));
  const uint8x16_t bits = hn::And(signs, hn::Load(D8(), kBits)).raw;
  return std::uint32_t{vaddv_u8(vget_low_u8(bits))} |
         (std::uint32_t{vaddv_u8(vget_high_u8(bits))} << 8);
#endif
}

// ---- masks ----

HWY_INLINE LaneMask greater_unsigned(const Lanes& a, const Lanes& b) {
  // Without the sign bit's meaning: a > b just where the greater of both is not b.
  LaneMask r;
  GRADWIRE_EACH(kWordVectors) {
    const V16 equal = hn::VecFromMask(D16(), hn::Eq(hn::Max(a.v[i], b.v[i]), b.v[i]));
    r.v[i] = hn::Not(equal);
  }
  return r;
}
// True if greater_unsigned() has a lane.
HWY_INLINE bool any_greater_unsigned(const Lanes& a, const Lanes& b) {
  V16 above = hn::SaturatedSub(a.v[0], b.v[0]);
  for (std::size_t i = 1; i < kWordVectors; ++i) {
    above = hn::Or(above, hn::SaturatedSub(a.v[i], b.v[i]));
  }
  return !hn::AllTrue(D16(), hn::Eq(above, hn::Zero(D16())));
}
HWY_INLINE LaneMask is_zero(const Lanes& v) {
  LaneMask r;
  GRADWIRE_EACH(kWordVectors) { r.v[i] = hn::VecFromMask(D16(), hn::Eq(v.v[i], hn::Zero(D16()))); }
  return r;
}
// Lanes whose bit 15 is set.
HWY_INLINE LaneMask negative(const Lanes& v) {
  LaneMask r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::BitCast(D16(), hn::BroadcastSignBit(hn::BitCast(DI16(), v.v[i])));
  }
  return r;
}
// True if negative() has a lane.
HWY_INLINE bool any_negative(const Lanes& v) {
  V16 all = v.v[0];
  for (std::size_t i = 1; i < kWordVectors; ++i) all = hn::Or(all, v.v[i]);
  // Bit 7 of the upper bytes.
  return (byte_signs(hn::BitCast(D8(), all)) & 0xAAAAAAAAu) != 0;
}
HWY_INLINE bool any(const LaneMask& mask) {
  Lanes lanes;
  GRADWIRE_EACH(kWordVectors) lanes.v[i] = mask.v[i];
  return any_negative(lanes);
}
HWY_INLINE LaneMask one_lane(std::size_t lane) {
  alignas(32) std::uint16_t words[32] = {};
  words[lane] = 0xFFFF;
  LaneMask r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::Load(D16(), words + i * kVectorWords);
  return r;
}
HWY_INLINE LaneMask and_not(const LaneMask& a, const LaneMask& not_b) {
  LaneMask r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::AndNot(not_b.v[i], a.v[i]);
  return r;
}
HWY_INLINE Lanes select(const LaneMask& mask, const Lanes& yes, const Lanes& no) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::IfThenElse(hn::MaskFromVec(mask.v[i]), yes.v[i], no.v[i]);
  }
  return r;
}
HWY_INLINE Lanes clear(const LaneMask& mask, const Lanes& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = hn::AndNot(mask.v[i], v.v[i]);
  return r;
}

// ---- blocks of 16 bytes ----

// The low bytes of words up to 255, block by block.
HWY_INLINE V8 pack(V16 a, V16 b) {
#if GRADWIRE_LANE_BLOCKS == 2
  return V8{_mm256_packus_epi16(a.raw, b.raw)};
#elif HWY_ARCH_X86
  return V8{_mm_packus_epi16(a.raw, b.raw)};
#else
  return V8{vuzp1q_u8(hn::BitCast(D8(), a).raw, hn::BitCast(D8(), b).raw)};
#endif
}
// Block b of all lanes is lanes 8b to 8b + 7.
#if GRADWIRE_LANE_BLOCKS == 2
HWY_INLINE hn::Vec<Block16> lower_block(V16 v) { return hn::LowerHalf(v); }
HWY_INLINE hn::Vec<Block16> upper_block(V16 v) { return hn::UpperHalf(Block16(), v); }
HWY_INLINE hn::Vec<Block16> word_block(const Lanes& v, std::size_t block) {
  return block % 2 == 0 ? lower_block(v.v[block / 2]) : upper_block(v.v[block / 2]);
}
HWY_INLINE V16 join_blocks(const hn::Vec<Block16>* blocks, std::size_t vector) {
  return hn::Combine(D16(), blocks[2 * vector + 1], blocks[2 * vector]);
}
#else
HWY_INLINE hn::Vec<Block16> word_block(const Lanes& v, std::size_t block) { return v.v[block]; }
HWY_INLINE V16 join_blocks(const hn::Vec<Block16>* blocks, std::size_t vector) {
  return blocks[vector];
}
#endif

#endif  // GRADWIRE_LANE_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
