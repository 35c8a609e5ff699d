// 32 lanes of 16 bits, and the operations on them that Highway 1.0.3 lacks: table look-up by byte,
// funnel shifts of 16 bits, compress and expand of words. AVX-512 with VBMI2 has instructions for
// all of them, used here; other vectors take core/lane_*-inl.h (GRADWIRE_LANE_VECTORS). A target
// without vectors leaves GRADWIRE_HAVE_LANE_OPS 0 and uses the plain coder.
#if defined(GRADWIRE_CORE_LANE_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_LANE_OPS_INL_H_
#undef GRADWIRE_CORE_LANE_OPS_INL_H_
#else
#define GRADWIRE_CORE_LANE_OPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#undef GRADWIRE_LANE_VECTORS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_SSE4 || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define GRADWIRE_LANE_VECTORS 1
#else
#define GRADWIRE_LANE_VECTORS 0
#endif

// Blocks of 16 bytes in one of these vectors.
#undef GRADWIRE_LANE_BLOCKS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define GRADWIRE_LANE_BLOCKS 2
#else
#define GRADWIRE_LANE_BLOCKS 1
#endif

#undef GRADWIRE_HAVE_LANE_OPS
#if HWY_TARGET == HWY_AVX3_DL || GRADWIRE_LANE_VECTORS
#define GRADWIRE_HAVE_LANE_OPS 1
#else
#define GRADWIRE_HAVE_LANE_OPS 0
#endif

#include "core/lane_bytes-inl.h"
#include "core/lane_wides-inl.h"
#include "core/lane_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

using Lanes = __m512i;
using LaneMask = __mmask32;
using Table32 = __m512i;
struct Table128 {
  __m512i low, high;
};

HWY_INLINE Lanes load_lanes(const void* from) { return _mm512_loadu_si512(from); }
HWY_INLINE void store_lanes(Lanes v, void* to) { _mm512_storeu_si512(to, v); }
HWY_INLINE Lanes zero_lanes() { return _mm512_setzero_si512(); }
HWY_INLINE Lanes set_lanes(int v) { return _mm512_set1_epi16(static_cast<short>(v)); }
HWY_INLINE Lanes add(Lanes a, Lanes b) { return _mm512_add_epi16(a, b); }
HWY_INLINE Lanes sub(Lanes a, Lanes b) { return _mm512_sub_epi16(a, b); }
HWY_INLINE Lanes and_(Lanes a, Lanes b) { return _mm512_and_si512(a, b); }
HWY_INLINE Lanes or_(Lanes a, Lanes b) { return _mm512_or_si512(a, b); }
template <int kBits>
HWY_INLINE Lanes shift_right(Lanes v) {
  return _mm512_srli_epi16(v, kBits);
}
HWY_INLINE Lanes shift_right(Lanes v, Lanes n) { return _mm512_srlv_epi16(v, n); }
HWY_INLINE Lanes shift_left(Lanes v, Lanes n) { return _mm512_sllv_epi16(v, n); }
// Low 16 bits of (high : low) >> n, and high 16 bits of (high : low) << n, 0 <= n <= 15.
HWY_INLINE Lanes funnel_right(Lanes high, Lanes low, Lanes n) {
  return _mm512_shrdv_epi16(low, high, n);
}
HWY_INLINE Lanes funnel_left(Lanes high, Lanes low, Lanes n) {
  return _mm512_shldv_epi16(high, low, n);
}

HWY_INLINE Table32 load_table32(const std::uint16_t* from) { return _mm512_loadu_si512(from); }
HWY_INLINE Table32 make_table32(Lanes elements) { return elements; }
HWY_INLINE Table128 load_table128(const std::uint8_t* from) {
  return {_mm512_loadu_si512(from), _mm512_loadu_si512(from + 64)};
}
// Element (i mod 32) of the table; the upper bits of i do not matter.
HWY_INLINE Lanes lookup32(Table32 table, Lanes i) { return _mm512_permutexvar_epi16(i, table); }
// Byte (i mod 128), zero-extended.
HWY_INLINE Lanes lookup128(const Table128& table, Lanes i) {
  return _mm512_maskz_permutex2var_epi8(0x5555555555555555ull, table.low, i, table.high);
}

HWY_INLINE LaneMask negative(Lanes v) { return _mm512_movepi16_mask(v); }
HWY_INLINE LaneMask test(Lanes v, Lanes bits) { return _mm512_test_epi16_mask(v, bits); }
HWY_INLINE Lanes select(LaneMask mask, Lanes yes, Lanes no) {
  return _mm512_mask_mov_epi16(no, mask, yes);
}
HWY_INLINE Lanes clear(LaneMask mask, Lanes v) {
  return _mm512_maskz_mov_epi16(static_cast<LaneMask>(~mask), v);
}
HWY_INLINE bool any_negative(Lanes v) { return negative(v) != 0; }
HWY_INLINE LaneMask and_not(LaneMask a, LaneMask not_b) {
  return static_cast<LaneMask>(a & ~not_b);
}
HWY_INLINE LaneMask one_lane(std::size_t lane) { return LaneMask{1} << lane; }
HWY_INLINE bool any(LaneMask mask) { return mask != 0; }
// Bit i: lane i is in the mask.
HWY_INLINE std::uint32_t mask_bits(LaneMask mask) { return mask; }
HWY_INLINE std::size_t count_mask(LaneMask mask) {
  return static_cast<std::size_t>(_mm_popcnt_u32(mask));
}
// Writes the lanes of the mask one after the other; may write 32 words. On Zen 4 the form that
// compresses into memory is slow, and the merging form does not wait for an old destination.
HWY_INLINE std::byte* compress_store(Lanes v, LaneMask mask, std::byte* to) {
  _mm512_storeu_si512(to, _mm512_mask_compress_epi16(v, mask, v));
  return to + sizeof(std::uint16_t) * count_mask(mask);
}
// Lanes of the mask take the words at `from` one after the other; 32 words must be readable.
HWY_INLINE Lanes expand_load(LaneMask mask, Lanes other, const std::byte* from) {
  return _mm512_mask_expand_epi16(other, mask, _mm512_loadu_si512(from));
}

// Value order to lane order (lane 2i: value i, lane 2i + 1: value 16 + i) and back.
HWY_INLINE Lanes interleave_words(const std::uint16_t* values) {
  alignas(64) static constexpr std::uint16_t kOrder[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), _mm512_loadu_si512(values));
}
HWY_INLINE void deinterleave_words(Lanes v, std::uint16_t* values) {
  alignas(64) static constexpr std::uint16_t kOrder[32] = {
      0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  _mm512_storeu_si512(values, _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), v));
}
HWY_INLINE Lanes interleave_bytes(const std::uint8_t* values) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m512i low = _mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes));
  const __m512i high = _mm512_cvtepu8_epi32(_mm256_extracti128_si256(bytes, 1));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}
// The low five bits of each lane as bytes in value order.
HWY_INLINE void deinterleave_bytes(Lanes v, std::uint8_t* values) {
  const __m512i low = _mm512_and_si512(v, _mm512_set1_epi16(31));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values), _mm512_cvtepi32_epi8(low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values + 16),
                   _mm512_cvtepi32_epi8(_mm512_srli_epi32(low, 16)));
}

// ---- 32 values of 32 bits: value i of the half row in `first`, 16 + i in `second` ----

struct WidePair {
  __m512i first, second;
};

HWY_INLINE WidePair load_wide(const std::uint32_t* from) {
  return {_mm512_loadu_si512(from), _mm512_loadu_si512(from + 16)};
}
// Asks for the cache lines of 64 values that lie `before` values lower; any address may be asked
// for.
HWY_INLINE void prefetch_row(const std::uint32_t* row, std::size_t before) {
  const char* const at = reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(row) -
                                                       before * sizeof(std::uint32_t));
  for (int line = 0; line < 4; ++line) _mm_prefetch(at + 64 * line, _MM_HINT_T0);
}
HWY_INLINE void store_wide(WidePair v, std::uint32_t* to) {
  _mm512_storeu_si512(to, v.first);
  _mm512_storeu_si512(to + 16, v.second);
}
// Bits of `yes` where `mask` has ones, else of `no`.
HWY_INLINE Lanes select_bits(Lanes mask, Lanes yes, Lanes no) {
  return _mm512_ternarylogic_epi32(mask, yes, no, 0xCA);
}
// a | (b & c)
HWY_INLINE Lanes or_and(Lanes a, Lanes b, Lanes c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0xF8);
}
// Bits kDown to kDown + 15 of each value, in lane order; kDown is 1 to 16.
template <int kDown>
HWY_INLINE Lanes narrow(WidePair v) {
  return select_bits(_mm512_set1_epi32(static_cast<int>(0xFFFF0000u)),
                     _mm512_slli_epi32(v.second, 16 - kDown), _mm512_srli_epi32(v.first, kDown));
}
HWY_INLINE Lanes low_words(WidePair v) {
  return select_bits(_mm512_set1_epi32(0xFFFF), v.first, _mm512_slli_epi32(v.second, 16));
}
// The values with these upper and lower halves.
HWY_INLINE WidePair widen(Lanes high, Lanes low) {
  const __m512i mask = _mm512_set1_epi32(0xFFFF);
  return {select_bits(mask, low, _mm512_slli_epi32(high, 16)),
          select_bits(mask, _mm512_srli_epi32(low, 16), high)};
}
template <int kBits>
HWY_INLINE Lanes shift_left(Lanes v) {
  return _mm512_slli_epi16(v, kBits);
}
// The sign, bit 15, comes in from above.
template <int kBits>
HWY_INLINE Lanes shift_right_signed(Lanes v) {
  return _mm512_srai_epi16(v, kBits);
}
HWY_INLINE LaneMask greater_unsigned(Lanes a, Lanes b) { return _mm512_cmpgt_epu16_mask(a, b); }
HWY_INLINE bool any_greater_unsigned(Lanes a, Lanes b) { return greater_unsigned(a, b) != 0; }
HWY_INLINE LaneMask is_zero(Lanes v) { return _mm512_testn_epi16_mask(v, v); }
// Clears the values of these lanes.
HWY_INLINE WidePair clear_wide(LaneMask lanes, WidePair v) {
  const __m512i marks = _mm512_movm_epi16(lanes);
  const __m512i low = _mm512_set1_epi32(0xFFFF);
  return {
      _mm512_maskz_mov_epi32(_mm512_testn_epi32_mask(marks, low), v.first),
      _mm512_maskz_mov_epi32(_mm512_testn_epi32_mask(marks, _mm512_slli_epi32(low, 16)), v.second)};
}

using WideFloat = __m512;
HWY_INLINE WideFloat set_float(float x) { return _mm512_set1_ps(x); }
HWY_INLINE WidePair mul_float(WidePair v, WideFloat x) {
  return {_mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(v.first), x)),
          _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(v.second), x))};
}
HWY_INLINE WidePair add_float(WidePair v, WidePair w) {
  return {_mm512_castps_si512(
              _mm512_add_ps(_mm512_castsi512_ps(v.first), _mm512_castsi512_ps(w.first))),
          _mm512_castps_si512(
              _mm512_add_ps(_mm512_castsi512_ps(v.second), _mm512_castsi512_ps(w.second)))};
}
// (v + x) - x
HWY_INLINE WidePair add_and_subtract(WidePair v, WideFloat x) {
  return {_mm512_castps_si512(_mm512_sub_ps(_mm512_add_ps(_mm512_castsi512_ps(v.first), x), x)),
          _mm512_castps_si512(_mm512_sub_ps(_mm512_add_ps(_mm512_castsi512_ps(v.second), x), x))};
}
// (v + addend + bit `drop` of v) with the bits of ~keep cleared, on 32-bit numbers.
HWY_INLINE __m512i round_bits(__m512i v, __m512i addend, __m128i drop, __m512i keep) {
  const __m512i odd = _mm512_and_si512(_mm512_srl_epi32(v, drop), _mm512_set1_epi32(1));
  return _mm512_and_si512(_mm512_add_epi32(_mm512_add_epi32(v, addend), odd), keep);
}
struct WideRounding {
  __m512i addend, keep;
  __m128i drop;
};
HWY_INLINE WideRounding make_rounding(std::uint32_t drop) {
  return {_mm512_set1_epi32(static_cast<int>((1u << (drop - 1)) - 1)),
          _mm512_set1_epi32(static_cast<int>(~((1u << drop) - 1))),
          _mm_cvtsi32_si128(static_cast<int>(drop))};
}
HWY_INLINE WidePair round_wide(WidePair v, const WideRounding& r) {
  return {round_bits(v.first, r.addend, r.drop, r.keep),
          round_bits(v.second, r.addend, r.drop, r.keep)};
}

// The low kBytes bytes of each value >> shift, in the order of the values.
template <int kBytes>
HWY_INLINE void store_shifted(WidePair v, int shift, std::byte* to) {
  const __m128i by = _mm_cvtsi32_si128(shift);
  const __m512i first = _mm512_srl_epi32(v.first, by);
  const __m512i second = _mm512_srl_epi32(v.second, by);
  if constexpr (kBytes == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(first));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm512_cvtepi32_epi16(second));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(first));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm512_cvtepi32_epi8(second));
  }
}
template <int kBytes>
HWY_INLINE WidePair load_shifted(const std::byte* from, int shift) {
  const __m128i by = _mm_cvtsi32_si128(shift);
  if constexpr (kBytes == 2) {
    const auto* words = reinterpret_cast<const __m256i*>(from);
    return {_mm512_sll_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(words)), by),
            _mm512_sll_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(words + 1)), by)};
  } else {
    const auto* bytes = reinterpret_cast<const __m128i*>(from);
    return {_mm512_sll_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes)), by),
            _mm512_sll_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes + 1)), by)};
  }
}
// v | w where v has one of the bits of `any`, else v.
HWY_INLINE WidePair or_where(WidePair v, std::uint32_t any, WidePair w) {
  const __m512i bits = _mm512_set1_epi32(static_cast<int>(any));
  return {
      _mm512_mask_or_epi32(v.first, _mm512_test_epi32_mask(v.first, bits), v.first, w.first),
      _mm512_mask_or_epi32(v.second, _mm512_test_epi32_mask(v.second, bits), v.second, w.second)};
}
// The lanes whose bit 15 is set take the values at `from`, one after the other in the order of the
// values. Reads and returns the end of just as many.
HWY_INLINE const std::byte* expand_wide(Lanes marks, const std::byte* from, WidePair* v) {
  const __mmask16 first = _mm512_test_epi32_mask(marks, _mm512_set1_epi32(0x8000));
  const __mmask16 second = _mm512_movepi32_mask(marks);
  v->first = _mm512_mask_expandloadu_epi32(v->first, first, from);
  from += sizeof(std::uint32_t) * count_mask(first);
  v->second = _mm512_mask_expandloadu_epi32(v->second, second, from);
  return from + sizeof(std::uint32_t) * count_mask(second);
}

#endif  // HWY_TARGET == HWY_AVX3_DL

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
