#include "entropy/tans_encode_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "entropy/tans_encode_simd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/lane_ops-inl.h"
#include "core/simd_dispatch.h"
#include "entropy/tans_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

bool has_encoder() { return GRADWIRE_HAVE_LANE_OPS; }

#if GRADWIRE_HAVE_LANE_OPS

template <typename Tables>
HWY_NOINLINE std::byte* encode_rows_with(const Tables& prepared, const std::uint8_t* tokens,
                                         const std::uint16_t* lane_bits, std::uint32_t count,
                                         TansVectorLanes* lanes, std::byte* words) {
  const KeptTables<Tables> tables = prepared;
  HalfState low = load_half(*lanes, 0);
  HalfState high = load_half(*lanes, kHalfLanes);
  for (std::uint32_t row = count; row > 0;) {
    row -= kMaxLanes;
    words = encode_half(tables, interleave_bytes(tokens + row + kHalfLanes),
                        interleave_words(lane_bits + row + kHalfLanes), high, words);
    words = encode_half(tables, interleave_bytes(tokens + row), interleave_words(lane_bits + row),
                        low, words);
  }
  store_half(low, 0, lanes);
  store_half(high, kHalfLanes, lanes);
  return words;
}

std::byte* encode_rows(const std::uint8_t* tokens, const std::uint16_t* lane_bits,
                       std::uint32_t count, TansVectorEncoder* encoder, std::byte* words) {
  const TansVectorEncodeTable& table = encoder->table;
  if (encoder->is_prefix_code) {
    return encode_rows_with(load_prefix_tables(table), tokens, lane_bits, count, &encoder->lanes,
                            words);
  }
  return encode_rows_with(load_encode_tables(table), tokens, lane_bits, count, &encoder->lanes,
                          words);
}

#else

std::byte* encode_rows(const std::uint8_t*, const std::uint16_t*, std::uint32_t, TansVectorEncoder*,
                       std::byte*) {
  return nullptr;
}

#endif  // GRADWIRE_HAVE_LANE_OPS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(has_encoder);
HWY_EXPORT(encode_rows);

void lanes_to_vector(const TansEncodeLanes& plain, TansVectorLanes* lanes) noexcept {
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    lanes->n0[i] = static_cast<std::uint16_t>(plain[i].window >> 32);
    lanes->n1[i] = static_cast<std::uint16_t>(plain[i].window >> 16);
    lanes->n2[i] = static_cast<std::uint16_t>(plain[i].window);
    lanes->position[i] = static_cast<std::uint16_t>(32 - plain[i].shift);
    lanes->state[i] = static_cast<std::uint16_t>(plain[i].state >> kTansStateShift);
  }
}

void lanes_from_vector(const TansVectorLanes& lanes, TansEncodeLanes* plain) noexcept {
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    (*plain)[i].window =
        (std::uint64_t{lanes.n0[i]} << 32) | (std::uint64_t{lanes.n1[i]} << 16) | lanes.n2[i];
    (*plain)[i].shift = 32u - lanes.position[i];
    (*plain)[i].state = std::uint32_t{lanes.state[i]} << kTansStateShift;
  }
}

}  // namespace

bool has_vector_encoder() noexcept { return GRADWIRE_DISPATCH(has_encoder)(); }

void start_vector_encoder(const TansEncodeTable& table, TansVectorEncoder* encoder) noexcept {
  TansVectorEncodeTable& to = encoder->table;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    const TansEncodeEntry& entry = table.tokens[token];
    to.delta[token] = static_cast<std::uint16_t>(entry.delta >> kTansStateShift);
    to.start[token] = static_cast<std::uint16_t>(entry.start);
    to.lane_bits[token] = entry.lane_bits;
  }
  for (std::uint32_t i = 0; i < kTansStates; ++i) {
    to.states[i] = static_cast<std::uint8_t>(table.states[i] >> kTansStateShift);
  }
  encoder->is_prefix_code = table.is_prefix_code;
  encoder->lanes = TansVectorLanes{};
  encoder->lanes.state.fill(kTansStates);
}

std::byte* encode_group_simd(const TansEncodeTable& table, const std::uint8_t* tokens,
                             const std::uint16_t* lane_bits, std::uint32_t count,
                             TansVectorEncoder* encoder, std::byte* words) noexcept {
  if (count % kMaxLanes == 0) {
    std::byte* const end = GRADWIRE_DISPATCH(encode_rows)(tokens, lane_bits, count, encoder, words);
    if (end != nullptr) return end;
  }
  // A short row, or no vector encoder here.
  TansEncodeLanes plain;
  lanes_from_vector(encoder->lanes, &plain);
  words = encode_group_ref(table, kMaxLanes, tokens, lane_bits, count, &plain, words);
  lanes_to_vector(plain, &encoder->lanes);
  return words;
}

void finish_vector_encoder(const TansVectorEncoder& encoder, TansEncodeLanes* lanes) noexcept {
  lanes_from_vector(encoder.lanes, lanes);
}

}  // namespace gradwire::internal
#endif  // HWY_ONCE
