// 32 values of 32 bits as vectors, from and to the lanes of core/lane_words-inl.h. Only where
// GRADWIRE_LANE_VECTORS.
#if defined(GRADWIRE_CORE_LANE_WIDES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADWIRE_CORE_LANE_WIDES_INL_H_
#undef GRADWIRE_CORE_LANE_WIDES_INL_H_
#else
#define GRADWIRE_CORE_LANE_WIDES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/lane_bytes-inl.h"
#include "core/lane_words-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if GRADWIRE_LANE_VECTORS

HWY_INLINE WidePair load_wide(const std::uint32_t* from) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = hn::LoadU(D32(), from + i * kVectorWides);
    r.second[i] = hn::LoadU(D32(), from + 16 + i * kVectorWides);
  }
  return r;
}
HWY_INLINE void store_wide(const WidePair& v, std::uint32_t* to) {
  GRADWIRE_EACH(kWordVectors) {
    hn::StoreU(v.first[i], D32(), to + i * kVectorWides);
    hn::StoreU(v.second[i], D32(), to + 16 + i * kVectorWides);
  }
}
// Asks for the cache lines of 64 values that lie `before` values lower; any address may be asked
// for.
HWY_INLINE void prefetch_row(const std::uint32_t* row, std::size_t before) {
  const char* const at = reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(row) -
                                                       before * sizeof(std::uint32_t));
  GRADWIRE_EACH(4) hwy::Prefetch(at + 64 * i);
}

// Bits kDown to kDown + 15 of each value, in lane order; kDown is 1 to 16.
template <int kDown>
HWY_INLINE Lanes narrow(const WidePair& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::OddEven(as_words(hn::ShiftLeft<16 - kDown>(v.second[i])),
                         as_words(hn::ShiftRight<kDown>(v.first[i])));
  }
  return r;
}
HWY_INLINE Lanes low_words(const WidePair& v) {
  Lanes r;
  GRADWIRE_EACH(kWordVectors) {
    r.v[i] = hn::OddEven(as_words(hn::ShiftLeft<16>(v.second[i])), as_words(v.first[i]));
  }
  return r;
}
// The values with these upper and lower halves.
HWY_INLINE WidePair widen(const Lanes& high, const Lanes& low) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    const V16 up = as_words(hn::ShiftLeft<16>(as_wides(high.v[i])));
    const V16 down = as_words(hn::ShiftRight<16>(as_wides(low.v[i])));
    r.first[i] = as_wides(hn::OddEven(up, low.v[i]));
    r.second[i] = as_wides(hn::OddEven(high.v[i], down));
  }
  return r;
}
// Clears the values of these lanes.
HWY_INLINE WidePair clear_wide(const LaneMask& lanes, const WidePair& v) {
  const Lanes marks = select(lanes, set_lanes(0xFFFF), zero_lanes());
  const WidePair clears = widen(marks, marks);
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = hn::AndNot(clears.first[i], v.first[i]);
    r.second[i] = hn::AndNot(clears.second[i], v.second[i]);
  }
  return r;
}

// ---- float32 ----

struct WideFloat {
  hn::Vec<DF32> v;
};
HWY_INLINE WideFloat set_float(float x) { return {hn::Set(DF32(), x)}; }
HWY_INLINE hn::Vec<DF32> as_float(V32 v) { return hn::BitCast(DF32(), v); }
HWY_INLINE V32 from_float(hn::Vec<DF32> v) { return hn::BitCast(D32(), v); }

HWY_INLINE WidePair mul_float(const WidePair& v, const WideFloat& x) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = from_float(hn::Mul(as_float(v.first[i]), x.v));
    r.second[i] = from_float(hn::Mul(as_float(v.second[i]), x.v));
  }
  return r;
}
HWY_INLINE WidePair add_float(const WidePair& v, const WidePair& w) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = from_float(hn::Add(as_float(v.first[i]), as_float(w.first[i])));
    r.second[i] = from_float(hn::Add(as_float(v.second[i]), as_float(w.second[i])));
  }
  return r;
}
// (v + x) - x
HWY_INLINE WidePair add_and_subtract(const WidePair& v, const WideFloat& x) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = from_float(hn::Sub(hn::Add(as_float(v.first[i]), x.v), x.v));
    r.second[i] = from_float(hn::Sub(hn::Add(as_float(v.second[i]), x.v), x.v));
  }
  return r;
}

// ---- rounding, planes ----

struct WideRounding {
  V32 addend, keep;
  int drop;
};
HWY_INLINE WideRounding make_rounding(std::uint32_t drop) {
  return {hn::Set(D32(), (1u << (drop - 1)) - 1), hn::Set(D32(), ~((1u << drop) - 1)),
          static_cast<int>(drop)};
}
// (v + addend + bit `drop` of v) with the bits of ~keep cleared, on 32-bit numbers.
HWY_INLINE V32 round_bits(V32 v, const WideRounding& r) {
  const V32 odd = hn::And(hn::ShiftRightSame(v, r.drop), hn::Set(D32(), 1));
  return hn::And(hn::Add(hn::Add(v, r.addend), odd), r.keep);
}
HWY_INLINE WidePair round_wide(const WidePair& v, const WideRounding& rounding) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = round_bits(v.first[i], rounding);
    r.second[i] = round_bits(v.second[i], rounding);
  }
  return r;
}

template <int kBytes>
HWY_INLINE void store_narrow(V32 v, std::size_t number, std::byte* to) {
  if constexpr (kBytes == 2) {
    const hn::Half<D16> half;
    hn::StoreU(hn::TruncateTo(half, v), half, reinterpret_cast<std::uint16_t*>(to) + number);
  } else {
    const hn::Half<hn::Half<D8>> quarter;
    hn::StoreU(hn::U8FromU32(hn::And(v, hn::Set(D32(), 255))), quarter,
               reinterpret_cast<std::uint8_t*>(to) + number);
  }
}
template <int kBytes>
HWY_INLINE V32 load_narrow(const std::byte* from, std::size_t number) {
  if constexpr (kBytes == 2) {
    const hn::Half<D16> half;
    return hn::PromoteTo(D32(),
                         hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from) + number));
  } else {
    const hn::Half<hn::Half<D8>> quarter;
    return hn::PromoteTo(D32(),
                         hn::LoadU(quarter, reinterpret_cast<const std::uint8_t*>(from) + number));
  }
}
// The low kBytes bytes of each value >> shift, in the order of the values.
template <int kBytes>
HWY_INLINE void store_shifted(const WidePair& v, int shift, std::byte* to) {
  GRADWIRE_EACH(kWordVectors) {
    const std::size_t number = i * kVectorWides;
    store_narrow<kBytes>(hn::ShiftRightSame(v.first[i], shift), number, to);
    store_narrow<kBytes>(hn::ShiftRightSame(v.second[i], shift), 16 + number, to);
  }
}
template <int kBytes>
HWY_INLINE WidePair load_shifted(const std::byte* from, int shift) {
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    const std::size_t number = i * kVectorWides;
    r.first[i] = hn::ShiftLeftSame(load_narrow<kBytes>(from, number), shift);
    r.second[i] = hn::ShiftLeftSame(load_narrow<kBytes>(from, 16 + number), shift);
  }
  return r;
}
// v | w where v has one of the bits of `any`, else v.
HWY_INLINE V32 or_bits_where(V32 v, V32 any_of, V32 w) {
  const V32 none = hn::VecFromMask(D32(), hn::Eq(hn::And(v, any_of), hn::Zero(D32())));
  return hn::Or(v, hn::AndNot(none, w));
}
HWY_INLINE WidePair or_where(const WidePair& v, std::uint32_t any_of, const WidePair& w) {
  const V32 bits = hn::Set(D32(), any_of);
  WidePair r;
  GRADWIRE_EACH(kWordVectors) {
    r.first[i] = or_bits_where(v.first[i], bits, w.first[i]);
    r.second[i] = or_bits_where(v.second[i], bits, w.second[i]);
  }
  return r;
}
// Values whose lane has a bit take the values at `from`, one after the other; the end of those.
inline HWY_NOINLINE const std::byte* place_values(std::uint32_t lanes, const std::byte* from,
                                                  std::uint32_t* values) {
  for (std::uint32_t odd = 0; odd < 2; ++odd) {
    // Lanes 2i + odd carry values 16 odd + i.
    for (std::uint32_t left = lanes >> odd & 0x55555555u; left != 0; left &= left - 1) {
      const auto value = static_cast<std::uint32_t>(std::countr_zero(left)) / 2 + 16 * odd;
      std::memcpy(&values[value], from, sizeof(std::uint32_t));
      from += sizeof(std::uint32_t);
    }
  }
  return from;
}
// The lanes whose bit 15 is set take the values at `from`, one after the other in the order of the
// values. Reads and returns the end of just as many. Escapes are rare: one by one.
HWY_INLINE const std::byte* expand_wide(const Lanes& marks, const std::byte* from, WidePair* v) {
  alignas(32) std::uint32_t values[32];
  store_wide(*v, values);
  from = place_values(mask_bits(negative(marks)), from, values);
  *v = load_wide(values);
  return from;
}

#endif  // GRADWIRE_LANE_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#endif  // include guard
