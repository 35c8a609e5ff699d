// Lanes of one byte (states, positions, tokens) for the vectors of core/lane_words-inl.h: their
// tables, and compress and expand of words by masks of bytes. Only where GRADWIRE_LANE_VECTORS.
#if defined(GRADWIRE_CORE_LANE_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_LANE_BYTES_INL_H_
#undef GRADWIRE_CORE_LANE_BYTES_INL_H_
#else
#define GRADWIRE_CORE_LANE_BYTES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/lane_shuffles.h"
#include "core/lane_words-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if GRADWIRE_LANE_VECTORS

// ---- bytes ----

HWY_INLINE ByteLanes set_bytes(int x) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::Set(D8(), static_cast<std::uint8_t>(x));
  return r;
}
HWY_INLINE ByteLanes add(const ByteLanes& a, const ByteLanes& b) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::Add(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE ByteLanes sub(const ByteLanes& a, const ByteLanes& b) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::Sub(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE ByteLanes and_(const ByteLanes& a, const ByteLanes& b) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::And(a.v[i], b.v[i]);
  return r;
}
// The upper three bits of each byte.
HWY_INLINE ByteLanes upper_three_bits(const ByteLanes& v) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) {
    const V16 down = hn::ShiftRight<5>(hn::BitCast(D16(), v.v[i]));
    r.v[i] = hn::And(hn::BitCast(D8(), down), hn::Set(D8(), 7));
  }
  return r;
}
HWY_INLINE ByteMask equal(const ByteLanes& a, const ByteLanes& b) {
  ByteMask r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::VecFromMask(D8(), hn::Eq(a.v[i], b.v[i]));
  return r;
}
// Of bytes as signed numbers.
HWY_INLINE ByteMask greater_signed(const ByteLanes& a, const ByteLanes& b) {
  ByteMask r;
  GRADWIRE_EACH(kByteVectors) {
    const auto mask = hn::Gt(hn::BitCast(DI8(), a.v[i]), hn::BitCast(DI8(), b.v[i]));
    r.v[i] = hn::BitCast(D8(), hn::VecFromMask(DI8(), mask));
  }
  return r;
}
// a + 1 in the lanes of the mask: its ones are -1.
HWY_INLINE ByteLanes add_one_where(const ByteMask& mask, const ByteLanes& a) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = hn::Sub(a.v[i], mask.v[i]);
  return r;
}
HWY_INLINE ByteLanes select(const ByteMask& mask, const ByteLanes& yes, const ByteLanes& no) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors)
  r.v[i] = hn::IfThenElse(hn::MaskFromVec(mask.v[i]), yes.v[i], no.v[i]);
  return r;
}

// Words with these low and high bytes.
HWY_INLINE Lanes join(const ByteLanes& low, const ByteLanes& high) {
  Lanes r;
  GRADWIRE_EACH(kByteVectors) {
    r.v[2 * i] = hn::BitCast(D16(), hn::InterleaveLower(D8(), low.v[i], high.v[i]));
    r.v[2 * i + 1] = hn::BitCast(D16(), hn::InterleaveUpper(D8(), low.v[i], high.v[i]));
  }
  return r;
}
HWY_INLINE Lanes widen_bytes(const ByteLanes& v) { return join(v, set_bytes(0)); }
HWY_INLINE LaneMask widen_mask(const ByteMask& mask) {
  LaneMask r;
  GRADWIRE_EACH(kByteVectors) {
    r.v[2 * i] = hn::BitCast(D16(), hn::InterleaveLower(D8(), mask.v[i], mask.v[i]));
    r.v[2 * i + 1] = hn::BitCast(D16(), hn::InterleaveUpper(D8(), mask.v[i], mask.v[i]));
  }
  return r;
}
// Of words up to 255.
HWY_INLINE ByteLanes narrow_words(const Lanes& v) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) r.v[i] = pack(v.v[2 * i], v.v[2 * i + 1]);
  return r;
}
HWY_INLINE ByteMask narrow_mask(const LaneMask& mask) {
  ByteMask r;
  GRADWIRE_EACH(kByteVectors) {
    // Saturates: of ones only one bit may be left over.
    r.v[i] = hn::VecFromMask(
        D8(), hn::Gt(pack(hn::ShiftRight<8>(mask.v[2 * i]), hn::ShiftRight<8>(mask.v[2 * i + 1])),
                     hn::Zero(D8())));
  }
  return r;
}
// Bit i: lane i is in the mask.
HWY_INLINE std::uint32_t mask_bits(const ByteMask& mask) {
#if GRADWIRE_LANE_BLOCKS == 2
  const std::uint32_t bits = byte_signs(mask.v[0]);
  return (bits & 0xFF0000FFu) | (bits >> 8 & 0xFF00u) | (bits & 0xFF00u) << 8;
#else
  return byte_signs(mask.v[0]) | byte_signs(mask.v[1]) << 16;
#endif
}
HWY_INLINE std::uint32_t mask_bits(const LaneMask& mask) { return mask_bits(narrow_mask(mask)); }
HWY_INLINE std::size_t count_mask(const LaneMask& mask) {
  return static_cast<std::size_t>(std::popcount(mask_bits(mask)));
}

// ---- tables ----

// 16 kPieces bytes. A shuffle takes byte (i mod 16) of a piece, or 0 where bit 7 of i is set (x86)
// or i is 16 or more (NEON). With the index i - 16 p for piece p, which has bit 7 set while
// i < 16 p < 128, x86 takes from each of the pieces 0 to i / 16: these hold their difference (XOR)
// to the one before, so that the XOR of all is the byte of the last. NEON takes from just that one.
template <std::size_t kPieces>
struct ByteTable {
  V8 pieces[kPieces];
  V8 step;  // 16. In memory, or compilers make a constant of each sum, more than there are
            // registers
};

// From the bytes themselves.
template <std::size_t kPieces>
HWY_INLINE void finish_byte_table(ByteTable<kPieces>& table) {
  table.step = hn::Set(D8(), 16);
#if HWY_ARCH_X86
  for (std::size_t i = kPieces - 1; i > 0; --i) {
    table.pieces[i] = hn::Xor(table.pieces[i], table.pieces[i - 1]);
  }
#endif
}
template <std::size_t kPieces>
HWY_INLINE ByteTable<kPieces> load_byte_table(const std::uint8_t* from) {
  ByteTable<kPieces> table;
  GRADWIRE_EACH(kPieces) table.pieces[i] = hn::LoadDup128(D8(), from + 16 * i);
  finish_byte_table(table);
  return table;
}
// `bytes` and what the pieces from kPiece on give. (In this order: bytes of the first pieces are
// there before the last pieces' index.)
template <std::size_t kPiece, std::size_t kPieces>
HWY_INLINE V8 lookup_from(const ByteTable<kPieces>& table, V8 index, V8 bytes) {
  bytes = hn::Xor(bytes, hn::TableLookupBytesOr0(table.pieces[kPiece], index));
  if constexpr (kPiece + 1 == kPieces) {
    return bytes;
  } else {
    return lookup_from<kPiece + 1>(table, hn::Sub(index, table.step), bytes);
  }
}
// Byte i of the table, i < 16 kPieces; 0 where kPieces is 1 and bit 7 of i is set.
template <std::size_t kPieces>
HWY_INLINE ByteLanes lookup(const ByteTable<kPieces>& table, const ByteLanes& index) {
  ByteLanes r;
  GRADWIRE_EACH(kByteVectors) {
    const V8 first = hn::TableLookupBytesOr0(table.pieces[0], index.v[i]);
    if constexpr (kPieces == 1) {
      r.v[i] = first;
    } else {
      r.v[i] = lookup_from<1>(table, hn::Sub(index.v[i], table.step), first);
    }
  }
  return r;
}

// The same for two: each piece of the table is loaded once.
struct ByteLanesPair {
  ByteLanes of[2];
};
template <std::size_t kPiece, std::size_t kPieces>
HWY_INLINE void lookup_pair_from(const ByteTable<kPieces>& table, V8 index0, V8 index1, V8& bytes0,
                                 V8& bytes1) {
  const V8 piece = table.pieces[kPiece];
  bytes0 = hn::Xor(bytes0, hn::TableLookupBytesOr0(piece, index0));
  bytes1 = hn::Xor(bytes1, hn::TableLookupBytesOr0(piece, index1));
  if constexpr (kPiece + 1 < kPieces) {
    lookup_pair_from<kPiece + 1>(table, hn::Sub(index0, table.step), hn::Sub(index1, table.step),
                                 bytes0, bytes1);
  }
}
template <std::size_t kPieces>
HWY_INLINE ByteLanesPair lookup(const ByteTable<kPieces>& table, const ByteLanesPair& index) {
  ByteLanesPair r;
  GRADWIRE_EACH(kByteVectors) {
    const V8 piece = table.pieces[0];
    r.of[0].v[i] = hn::TableLookupBytesOr0(piece, index.of[0].v[i]);
    r.of[1].v[i] = hn::TableLookupBytesOr0(piece, index.of[1].v[i]);
    if constexpr (kPieces > 1) {
      lookup_pair_from<1>(table, hn::Sub(index.of[0].v[i], table.step),
                          hn::Sub(index.of[1].v[i], table.step), r.of[0].v[i], r.of[1].v[i]);
    }
  }
  return r;
}

// Element i of 32 words.
struct Table32 {
  ByteTable<2> low, high;
};
// Of words up to 255.
HWY_INLINE ByteTable<2> make_byte_table(const Lanes& words) {
  ByteTable<2> table;
  const ByteLanes bytes = narrow_words(words);
#if GRADWIRE_LANE_BLOCKS == 2
  const hn::Repartition<std::uint64_t, Block8> d64;
  const auto a = hn::BitCast(d64, hn::LowerHalf(bytes.v[0]));
  const auto b = hn::BitCast(d64, hn::UpperHalf(Block8(), bytes.v[0]));
  const auto first = hn::BitCast(Block8(), hn::InterleaveLower(a, b));
  const auto second = hn::BitCast(Block8(), hn::InterleaveUpper(d64, a, b));
  table.pieces[0] = hn::Combine(D8(), first, first);
  table.pieces[1] = hn::Combine(D8(), second, second);
#else
  table.pieces[0] = bytes.v[0];
  table.pieces[1] = bytes.v[1];
#endif
  finish_byte_table(table);
  return table;
}
HWY_INLINE ByteTable<2> low_bytes_table(const Lanes& words) {
  return make_byte_table(and_(words, set_lanes(255)));
}
HWY_INLINE Table32 make_table32(const Lanes& words) {
  return {low_bytes_table(words), make_byte_table(shift_right<8>(words))};
}
HWY_INLINE Table32 load_table32(const std::uint16_t* from) {
  return make_table32(load_lanes(from));
}
HWY_INLINE Lanes lookup32(const Table32& table, const ByteLanes& index) {
  return join(lookup(table.low, index), lookup(table.high, index));
}

// ---- compress and expand ----

// How far up the bits of lanes 8b to 8b + 7 stand in byte_signs() of all vectors.
constexpr std::uint32_t block_bits_at(std::uint32_t block) {
  return kVectorBytes == 16 ? 8 * block : 8 * ((block >> 1) | (block & 1) << 1);
}
// Masks of 8 lanes each.
struct BlockMasks {
  std::uint32_t bits[4];
};
HWY_INLINE BlockMasks block_masks(const ByteMask& mask) {
  std::uint32_t all = 0;
  GRADWIRE_EACH(kByteVectors) all |= byte_signs(mask.v[i]) << 16 * i;
  BlockMasks r;
  GRADWIRE_EACH(4) r.bits[i] = all >> block_bits_at(static_cast<std::uint32_t>(i)) & 0xFF;
  return r;
}
// Writes the lanes of the mask, whose bytes' bit 7 counts, one after the other; may write 8 words
// from the place behind the last on.
HWY_INLINE std::byte* compress_store(const Lanes& v, const ByteMask& mask, std::byte* to) {
  const BlockMasks masks = block_masks(mask);
  GRADWIRE_EACH(4) {
    const auto control = hn::Load(Block8(), kCompressShuffles.bytes[masks.bits[i]]);
    const auto words = hn::BitCast(Block8(), word_block(v, i));
    hn::StoreU(hn::TableLookupBytes(words, control), Block8(), reinterpret_cast<std::uint8_t*>(to));
    to += 2 * std::popcount(masks.bits[i]);
  }
  return to;
}
// Lanes of the mask take the words before *end, the first of them the first word; moves *end to
// that word. Others are 0. Reads up to 16 bytes from *end on.
HWY_INLINE Lanes expand_load_down(const ByteMask& mask, const std::byte** end) {
  const BlockMasks masks = block_masks(mask);
  hn::Vec<Block16> blocks[4];
  const std::byte* from = *end;
  for (std::size_t i = 4; i-- > 0;) {
    from -= 2 * std::popcount(masks.bits[i]);
    const auto control = hn::Load(Block8(), kExpandShuffles.bytes[masks.bits[i]]);
    const auto words = hn::LoadU(Block8(), reinterpret_cast<const std::uint8_t*>(from));
    blocks[i] = hn::BitCast(Block16(), hn::TableLookupBytesOr0(words, control));
  }
  *end = from;
  Lanes r;
  GRADWIRE_EACH(kWordVectors) r.v[i] = join_blocks(blocks, i);
  return r;
}
// ---- value order to lane order (lane 2i: value i, lane 2i + 1: value 16 + i) and back ----

HWY_INLINE Lanes interleave_words(const std::uint16_t* values) {
  const hn::Half<D16> half;
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    const V32 low = hn::PromoteTo(D32(), hn::LoadU(half, values + i * kVectorWides));
    const V32 high = hn::PromoteTo(D32(), hn::LoadU(half, values + 16 + i * kVectorWides));
    r.v[i] = as_words(hn::Or(low, hn::ShiftLeft<16>(high)));
  }
  return r;
}
HWY_INLINE void deinterleave_words(const Lanes& v, std::uint16_t* values) {
  const hn::Half<D16> half;
  GRADWIRE_EACH(kWordVectors) {
    const V32 both = as_wides(v.v[i]);
    hn::StoreU(hn::TruncateTo(half, both), half, values + i * kVectorWides);
    hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(both)), half,
               values + 16 + i * kVectorWides);
  }
}
HWY_INLINE Lanes interleave_bytes(const std::uint8_t* values) {
  const hn::Half<hn::Half<D8>> quarter;
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    const V32 low = hn::PromoteTo(D32(), hn::LoadU(quarter, values + i * kVectorWides));
    const V32 high = hn::PromoteTo(D32(), hn::LoadU(quarter, values + 16 + i * kVectorWides));
    r.v[i] = as_words(hn::Or(low, hn::ShiftLeft<16>(high)));
  }
  return r;
}
// The low five bits of each lane as bytes in value order.
HWY_INLINE void deinterleave_bytes(const ByteLanes& v, std::uint8_t* values) {
  const hn::Half<hn::Half<D8>> quarter;
  const Lanes words = widen_bytes(and_(v, set_bytes(31)));
  GRADWIRE_EACH(kWordVectors) {
    const V32 both = as_wides(words.v[i]);
    hn::StoreU(hn::U8FromU32(hn::And(both, hn::Set(D32(), 255))), quarter,
               values + i * kVectorWides);
    hn::StoreU(hn::U8FromU32(hn::ShiftRight<16>(both)), quarter, values + 16 + i * kVectorWides);
  }
}

#endif  // GRADWIRE_LANE_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
