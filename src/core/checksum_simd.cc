#include "core/checksum_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/checksum_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

bool accumulate_all(const std::byte*, std::size_t, const std::uint8_t*, XxhLanes*) { return false; }

#else

using D64 = hn::CappedTag<std::uint64_t, 8>;
using D32 = hn::Repartition<std::uint32_t, D64>;
using D8 = hn::Repartition<std::uint8_t, D64>;
using V64 = hn::Vec<D64>;

constexpr std::size_t kSecretStep = 8;
constexpr std::size_t kStripes = (kXxhSecret - kXxhStripe) / kSecretStep;  // of a block
constexpr std::size_t kBlock = kStripes * kXxhStripe;
constexpr std::size_t kLastSecret = kXxhSecret - kXxhStripe;
constexpr std::uint32_t kPrime32 = 0x9E3779B1u;

HWY_INLINE V64 load(const void* from) {
  return hn::BitCast(D64(), hn::LoadU(D8(), static_cast<const std::uint8_t*>(from)));
}

// Low half times high half of each lane.
HWY_INLINE V64 mul_halves(V64 low, V64 high) {
  const D32 d;
  return hn::MulEven(hn::BitCast(d, low), hn::BitCast(d, high));
}

HWY_INLINE V64 add_stripe(V64 lanes, const std::byte* bytes, const std::uint8_t* secret) {
  const V64 data = load(bytes);
  const V64 key = hn::Xor(data, load(secret));
  const V64 sum = hn::Add(mul_halves(key, hn::ShiftRight<32>(key)), hn::Shuffle01(data));
  return hn::Add(lanes, sum);
}

HWY_INLINE V64 scramble(V64 lanes, const std::uint8_t* secret) {
  const V64 prime = hn::Set(D64(), kPrime32);
  const V64 mixed = hn::Xor(hn::Xor(lanes, hn::ShiftRight<47>(lanes)), load(secret));
  const V64 high = mul_halves(hn::ShiftRight<32>(mixed), prime);
  return hn::Add(mul_halves(mixed, prime), hn::ShiftLeft<32>(high));
}

// The first `stripes` stripes of a block, for the lanes that one vector holds.
HWY_INLINE V64 add_stripes(V64 lanes, const std::byte* bytes, std::size_t stripes,
                           const std::uint8_t* secret) {
  for (std::size_t i = 0; i < stripes; ++i) {
    lanes = add_stripe(lanes, bytes + i * kXxhStripe, secret + i * kSecretStep);
  }
  return lanes;
}

bool accumulate_all(const std::byte* bytes, std::size_t size, const std::uint8_t* secret,
                    XxhLanes* lanes) {
  const D64 d;
  const std::size_t n = hn::Lanes(d);
  const std::byte* const last = bytes + size - kXxhStripe;
  for (; size > kBlock; size -= kBlock, bytes += kBlock) {
    for (std::size_t lane = 0; lane < lanes->size(); lane += n) {
      const std::size_t at = lane * sizeof(std::uint64_t);
      std::uint64_t* const part = lanes->data() + lane;
      const V64 sum = add_stripes(hn::LoadU(d, part), bytes + at, kStripes, secret + at);
      hn::StoreU(scramble(sum, secret + kLastSecret + at), d, part);
    }
  }
  for (std::size_t lane = 0; lane < lanes->size(); lane += n) {
    const std::size_t at = lane * sizeof(std::uint64_t);
    std::uint64_t* const part = lanes->data() + lane;
    const V64 sum =
        add_stripes(hn::LoadU(d, part), bytes + at, (size - 1) / kXxhStripe, secret + at);
    // The last 64 bytes, with a secret that lies 7 bytes askew.
    hn::StoreU(add_stripe(sum, last + at, secret + kLastSecret - 7 + at), d, part);
  }
  return true;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(accumulate_all);

}  // namespace

bool xxh3_accumulate(const std::byte* bytes, std::size_t size, const std::uint8_t* secret,
                     XxhLanes* lanes) noexcept {
  return GRADWIRE_DISPATCH(accumulate_all)(bytes, size, secret, lanes);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
