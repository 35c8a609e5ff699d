// core/counter_rng.h in vectors: the noise of many values at once.
#if defined(GRADWIRE_CORE_NOISE_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_NOISE_VECTORS_INL_H_
#undef GRADWIRE_CORE_NOISE_VECTORS_INL_H_
#else
#define GRADWIRE_CORE_NOISE_VECTORS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Noise of one pair of vectors of values after the other. Its pairs count in 32 bits: the caller
// sees to it that `pair`, that of the first two values, does not pass a multiple of 2^32 on the
// way.
class NoiseVectors {
 public:
  using D32 = hwy::HWY_NAMESPACE::ScalableTag<std::uint32_t>;
  using V32 = hwy::HWY_NAMESPACE::Vec<D32>;

  // `iota`: 0, 1, 2, ... (made once for many runs: it goes through memory).
  HWY_INLINE NoiseVectors(std::uint64_t key, std::uint64_t pair, V32 iota) {
    namespace hn = hwy::HWY_NAMESPACE;
    const D32 d;
    low_ = hn::Set(d, static_cast<std::uint32_t>(key));
    addend_ =
        hn::Set(d, static_cast<std::uint32_t>(key >> 32) + static_cast<std::uint32_t>(pair >> 32));
    counter_ = hn::Add(iota, hn::Set(d, static_cast<std::uint32_t>(pair)));
  }

  // 16 bits for each value of two vectors.
  HWY_INLINE void next(V32* first, V32* second) {
    namespace hn = hwy::HWY_NAMESPACE;
    const D32 d;
    const hn::Repartition<std::uint16_t, D32> halves;
    const hn::Half<decltype(halves)> half;
    auto x = hn::Xor(counter_, low_);
    x = hn::Add(hn::Mul(hn::Xor(x, hn::ShiftRight<17>(x)), hn::Set(d, 0xED5AD4BBu)), addend_);
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<11>(x)), hn::Set(d, 0xAC4C1B51u));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x31848BABu));
    const auto noise = hn::BitCast(halves, hn::Xor(x, hn::ShiftRight<14>(x)));
    counter_ = hn::Add(counter_, hn::Set(d, static_cast<std::uint32_t>(hn::Lanes(d))));
    *first = hn::PromoteTo(d, hn::LowerHalf(half, noise));
    *second = hn::PromoteTo(d, hn::UpperHalf(half, noise));
  }

 private:
  V32 low_, addend_, counter_;
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
