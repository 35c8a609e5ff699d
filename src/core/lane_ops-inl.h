// 32 lanes of 16 bits, and the operations on them that Highway 1.0.3 lacks: table look-up by byte,
// funnel shifts of 16 bits, compress and expand of words. One body per target; a target without
// one leaves GRADWIRE_HAVE_LANE_OPS 0 and uses the plain coder.
#if defined(GRADWIRE_CORE_LANE_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_LANE_OPS_INL_H_
#undef GRADWIRE_CORE_LANE_OPS_INL_H_
#else
#define GRADWIRE_CORE_LANE_OPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#undef GRADWIRE_HAVE_LANE_OPS
#if HWY_TARGET == HWY_AVX3_DL
#define GRADWIRE_HAVE_LANE_OPS 1
#else
#define GRADWIRE_HAVE_LANE_OPS 0
#endif

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
HWY_INLINE std::size_t count_mask(LaneMask mask) {
  return static_cast<std::size_t>(_mm_popcnt_u32(mask));
}
// Writes the lanes of the mask one after the other; may write 32 words. On Zen 4 the form that
// compresses into memory is slow, and the merging form does not wait for an old destination.
HWY_INLINE std::uint16_t* compress_store(Lanes v, LaneMask mask, std::uint16_t* to) {
  _mm512_storeu_si512(to, _mm512_mask_compress_epi16(v, mask, v));
  return to + count_mask(mask);
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

#endif  // HWY_TARGET == HWY_AVX3_DL

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
