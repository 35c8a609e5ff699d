// Conversions of floats to integers without the care for what leaves the range, and of integers to
// bytes: what Highway 1.0.3 lacks, or does with two instructions more for each vector.
#if defined(GRADWIRE_CORE_INT_CONVERSIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_INT_CONVERSIONS_INL_H_
#undef GRADWIRE_CORE_INT_CONVERSIONS_INL_H_
#else
#define GRADWIRE_CORE_INT_CONVERSIONS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using ConvertedFloats = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>>;
using ConvertedInts = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>>;
using ConvertedBytes = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<std::int8_t>>;

// To the nearest integer (even), and towards 0. Magnitudes of 2^31 and more and NaN give some
// number.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
HWY_INLINE ConvertedInts nearest_in_range(ConvertedFloats v) {
  return ConvertedInts{_mm512_cvtps_epi32(v.raw)};
}
HWY_INLINE ConvertedInts truncate_in_range(ConvertedFloats v) {
  return ConvertedInts{_mm512_cvttps_epi32(v.raw)};
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE ConvertedInts nearest_in_range(ConvertedFloats v) {
  return ConvertedInts{_mm256_cvtps_epi32(v.raw)};
}
HWY_INLINE ConvertedInts truncate_in_range(ConvertedFloats v) {
  return ConvertedInts{_mm256_cvttps_epi32(v.raw)};
}
#else
HWY_INLINE ConvertedInts nearest_in_range(ConvertedFloats v) {
  return hwy::HWY_NAMESPACE::NearestInt(v);
}
HWY_INLINE ConvertedInts truncate_in_range(ConvertedFloats v) {
  return hwy::HWY_NAMESPACE::ConvertTo(hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>(), v);
}
#endif

// Four vectors as bytes, in order; what a byte cannot hold becomes the nearest that it can.
HWY_INLINE ConvertedBytes narrow_to_bytes(ConvertedInts a, ConvertedInts b, ConvertedInts c,
                                          ConvertedInts d) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  // Packing goes by 16 bytes: four bytes of a, b, c, d, then the next ones.
  const __m512i packed =
      _mm512_packs_epi16(_mm512_packs_epi32(a.raw, b.raw), _mm512_packs_epi32(c.raw, d.raw));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return ConvertedBytes{_mm512_permutexvar_epi32(order, packed)};
#elif HWY_TARGET == HWY_AVX2
  const __m256i packed =
      _mm256_packs_epi16(_mm256_packs_epi32(a.raw, b.raw), _mm256_packs_epi32(c.raw, d.raw));
  return ConvertedBytes{
      _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))};
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::int8_t> bytes;
  const hn::Half<decltype(bytes)> half;
  const hn::Half<decltype(half)> quarter;
  const auto low = hn::Combine(half, hn::DemoteTo(quarter, b), hn::DemoteTo(quarter, a));
  const auto high = hn::Combine(half, hn::DemoteTo(quarter, d), hn::DemoteTo(quarter, c));
  return hn::Combine(bytes, high, low);
#endif
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
