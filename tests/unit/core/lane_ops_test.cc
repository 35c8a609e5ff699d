// Every lane operation of every vector target against plain loops, on random lanes and on masks
// with no, one, all and random lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/core/lane_ops_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// After foreach_target.h, which includes this file once per target.
#include "core/lane_ops-inl.h"

#ifndef GRADWIRE_LANE_OPS_TEST_SHARED_
#define GRADWIRE_LANE_OPS_TEST_SHARED_
namespace gradwire::internal {

constexpr std::size_t kLaneCount = 32;
using Words = std::array<std::uint16_t, kLaneCount>;
using Wides = std::array<std::uint32_t, kLaneCount>;

// Operands of one round, and what went wrong.
struct LaneCase {
  Words a, b, c;
  Wides wide, wide2;
  std::uint32_t mask;
  std::string wrong;

  void expect(bool good, const char* operation) {
    if (!good && wrong.find(operation) == std::string::npos) wrong += std::string(operation) + " ";
  }
};

// The lane that carries value i of the half row.
constexpr std::size_t value_lane(std::size_t i) { return i < 16 ? 2 * i : 2 * i - 31; }

template <typename Function>
Words map_words(Function f) {
  Words words;
  for (std::size_t i = 0; i < kLaneCount; ++i) words[i] = static_cast<std::uint16_t>(f(i));
  return words;
}
template <typename Function>
Wides map_wides(Function f) {
  Wides wides;
  for (std::size_t i = 0; i < kLaneCount; ++i) wides[i] = static_cast<std::uint32_t>(f(i));
  return wides;
}
template <typename Function>
std::uint32_t map_bits(Function f) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kLaneCount; ++i) bits |= std::uint32_t{f(i)} << i;
  return bits;
}

}  // namespace gradwire::internal
#endif  // GRADWIRE_LANE_OPS_TEST_SHARED_

HWY_BEFORE_NAMESPACE();
namespace gradwire::internal {
namespace HWY_NAMESPACE {

#if GRADWIRE_HAVE_LANE_OPS

Words words_of_lanes(const Lanes& v) {
  Words words;
  store_lanes(v, words.data());
  return words;
}
Wides values_of(const WidePair& v) {
  Wides values;
  store_wide(v, values.data());
  return values;
}
// The lanes of the bits.
LaneMask lanes_of_bits(std::uint32_t bits) {
  return negative(
      load_lanes(map_words([&](std::size_t i) { return (bits >> i & 1) << 15; }).data()));
}
Wides patterns_of(const Wides& values, float (*f)(float, float), float x) {
  return map_wides([&](std::size_t i) {
    return std::bit_cast<std::uint32_t>(f(std::bit_cast<float>(values[i]), x));
  });
}

void check_words(LaneCase& t) {
  const Words &a = t.a, &b = t.b, &c = t.c;
  const Lanes va = load_lanes(a.data()), vb = load_lanes(b.data()), vc = load_lanes(c.data());
  const auto is = [&](const Lanes& got, auto f, const char* name) {
    t.expect(words_of_lanes(got) == map_words(f), name);
  };
  is(
      va, [&](std::size_t i) { return a[i]; }, "load_lanes/store_lanes");
  is(
      set_lanes(0x9ABC), [](std::size_t) { return 0x9ABC; }, "set_lanes");
  is(
      zero_lanes(), [](std::size_t) { return 0; }, "zero_lanes");
  is(
      add(va, vb), [&](std::size_t i) { return a[i] + b[i]; }, "add");
  is(
      sub(va, vb), [&](std::size_t i) { return a[i] - b[i]; }, "sub");
  is(
      and_(va, vb), [&](std::size_t i) { return a[i] & b[i]; }, "and_");
  is(
      or_(va, vb), [&](std::size_t i) { return a[i] | b[i]; }, "or_");
  is(
      or_and(va, vb, vc), [&](std::size_t i) { return a[i] | (b[i] & c[i]); }, "or_and");
  is(
      select_bits(va, vb, vc), [&](std::size_t i) { return (a[i] & b[i]) | (~a[i] & c[i]); },
      "select_bits");
  is(
      shift_right<5>(va), [&](std::size_t i) { return a[i] >> 5; }, "shift_right");
  is(
      shift_left<7>(va), [&](std::size_t i) { return a[i] << 7; }, "shift_left");
  is(
      shift_right_signed<9>(va),
      [&](std::size_t i) { return static_cast<std::int16_t>(a[i]) >> 9; }, "shift_right_signed");
}

void check_masks(LaneCase& t) {
  const Words &a = t.a, &b = t.b;
  const Lanes va = load_lanes(a.data()), vb = load_lanes(b.data());
  const LaneMask mask = lanes_of_bits(t.mask);
  const auto in = [&](std::size_t i) { return (t.mask >> i & 1) != 0; };
  t.expect(mask_bits(mask) == t.mask, "mask_bits");
  t.expect(count_mask(mask) == static_cast<std::size_t>(std::popcount(t.mask)), "count_mask");
  t.expect(any(mask) == (t.mask != 0), "any");
  for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
    t.expect(mask_bits(one_lane(lane)) == 1u << lane, "one_lane");
  }
  const std::uint32_t greater = map_bits([&](std::size_t i) { return a[i] > b[i]; });
  t.expect(mask_bits(greater_unsigned(va, vb)) == greater, "greater_unsigned");
  t.expect(any_greater_unsigned(va, vb) == (greater != 0), "any_greater_unsigned");
  const std::uint32_t signs = map_bits([&](std::size_t i) { return a[i] >= 0x8000; });
  t.expect(mask_bits(negative(va)) == signs, "negative");
  t.expect(any_negative(va) == (signs != 0), "any_negative");
  t.expect(mask_bits(and_not(mask, negative(va))) == (t.mask & ~signs), "and_not");
  const Lanes cleared = clear(mask, va);
  t.expect(words_of_lanes(cleared) == map_words([&](std::size_t i) { return in(i) ? 0 : a[i]; }),
           "clear");
  t.expect(
      mask_bits(is_zero(cleared)) == map_bits([&](std::size_t i) { return in(i) || a[i] == 0; }),
      "is_zero");
  t.expect(any_negative(cleared) == ((signs & ~t.mask) != 0), "any_negative");
  t.expect(words_of_lanes(select(mask, va, vb)) ==
               map_words([&](std::size_t i) { return in(i) ? a[i] : b[i]; }),
           "select");
  // One lane above its neighbour by one, all others equal.
  const Words above = map_words([&](std::size_t i) { return i == t.mask % 32 ? a[i] | 1 : a[i]; });
  const Words base = map_words([&](std::size_t i) { return i == t.mask % 32 ? a[i] & ~1 : a[i]; });
  t.expect(any_greater_unsigned(load_lanes(above.data()), load_lanes(base.data())),
           "any_greater_unsigned");
  t.expect(!any_greater_unsigned(load_lanes(base.data()), load_lanes(above.data())),
           "any_greater_unsigned");
}

void check_order(LaneCase& t) {
  const Words& a = t.a;
  t.expect(words_of_lanes(interleave_words(a.data())) ==
               map_words([&](std::size_t i) { return a[i / 2 + 16 * (i % 2)]; }),
           "interleave_words");
  Words back;
  deinterleave_words(interleave_words(a.data()), back.data());
  t.expect(back == a, "deinterleave_words");
  std::array<std::uint8_t, kLaneCount> bytes, low;
  for (std::size_t i = 0; i < kLaneCount; ++i) bytes[i] = static_cast<std::uint8_t>(a[i]);
  const Lanes tokens = interleave_bytes(bytes.data());
  t.expect(words_of_lanes(tokens) ==
               map_words([&](std::size_t i) { return bytes[i / 2 + 16 * (i % 2)]; }),
           "interleave_bytes");
#if GRADWIRE_LANE_VECTORS
  const auto symbols = narrow_words(tokens);
  const auto index = narrow_words(and_(tokens, set_lanes(31)));
#else
  const Lanes symbols = tokens, index = tokens;
#endif
  deinterleave_bytes(symbols, low.data());
  t.expect(std::equal(low.begin(), low.end(), bytes.begin(),
                      [](std::uint8_t x, std::uint8_t y) { return x == (y & 31); }),
           "deinterleave_bytes");
  const Words looked_up =
      map_words([&](std::size_t i) { return t.b[bytes[i / 2 + 16 * (i % 2)] & 31]; });
  t.expect(words_of_lanes(lookup32(load_table32(t.b.data()), index)) == looked_up, "load_table32");
  t.expect(words_of_lanes(lookup32(make_table32(load_lanes(t.b.data())), index)) == looked_up,
           "make_table32");
}

void check_wides(LaneCase& t) {
  const Wides& w = t.wide;
  const WidePair v = load_wide(w.data());
  const auto in = [&](std::size_t i) { return (t.mask >> value_lane(i) & 1) != 0; };
  const auto lane_word = [&](int down) {
    Words words;
    for (std::size_t i = 0; i < kLaneCount; ++i) {
      words[value_lane(i)] = static_cast<std::uint16_t>(w[i] >> down);
    }
    return words;
  };
  t.expect(values_of(v) == w, "load_wide/store_wide");
  t.expect(words_of_lanes(narrow<16>(v)) == lane_word(16), "narrow<16>");
  t.expect(words_of_lanes(narrow<8>(v)) == lane_word(8), "narrow<8>");
  t.expect(words_of_lanes(narrow<7>(v)) == lane_word(7), "narrow<7>");
  t.expect(words_of_lanes(low_words(v)) == lane_word(0), "low_words");
  t.expect(values_of(widen(narrow<16>(v), low_words(v))) == w, "widen");
  t.expect(values_of(clear_wide(lanes_of_bits(t.mask), v)) ==
               map_wides([&](std::size_t i) { return in(i) ? 0 : w[i]; }),
           "clear_wide");
  for (const std::uint32_t drop : {1u, 7u, 21u}) {
    t.expect(values_of(round_wide(v, make_rounding(drop))) == map_wides([&](std::size_t i) {
               return (w[i] + ((1u << (drop - 1)) - 1) + (w[i] >> drop & 1)) & ~((1u << drop) - 1);
             }),
             "round_wide");
  }
  const std::uint32_t some = t.a[0] * 0x10001u;
  t.expect(values_of(or_where(v, some, load_wide(t.wide2.data()))) == map_wides([&](std::size_t i) {
             return (w[i] & some) != 0 ? w[i] | t.wide2[i] : w[i];
           }),
           "or_where");

  std::array<std::byte, 2 * kLaneCount + 1> plane{};
  store_shifted<2>(v, 7, plane.data() + 1);
  t.expect(values_of(load_shifted<2>(plane.data() + 1, 3)) ==
               map_wides([&](std::size_t i) { return (w[i] >> 7 & 0xFFFF) << 3; }),
           "store_shifted<2>/load_shifted<2>");
  store_shifted<1>(v, 9, plane.data() + 1);
  t.expect(values_of(load_shifted<1>(plane.data() + 1, 4)) ==
               map_wides([&](std::size_t i) { return (w[i] >> 9 & 0xFF) << 4; }),
           "store_shifted<1>/load_shifted<1>");
}

void check_expand_wide(LaneCase& t) {
  // The outliers end where their memory ends.
  const auto count = static_cast<std::size_t>(std::popcount(t.mask));
  std::vector<std::byte> outliers(count * sizeof(std::uint32_t));
  if (count > 0) std::memcpy(outliers.data(), t.wide2.data(), outliers.size());
  const Lanes marks =
      load_lanes(map_words([&](std::size_t i) { return (t.mask >> i & 1) << 15; }).data());
  WidePair v = load_wide(t.wide.data());
  const std::byte* const end = expand_wide(marks, outliers.data(), &v);
  std::size_t next = 0;
  t.expect(values_of(v) == map_wides([&](std::size_t i) {
             return (t.mask >> value_lane(i) & 1) != 0 ? t.wide2[next++] : t.wide[i];
           }),
           "expand_wide");
  t.expect(end == outliers.data() + outliers.size(), "expand_wide end");
}

void check_floats(LaneCase& t) {
  // Numbers of exponents around 0: no NaN, which have more than one pattern.
  const auto number = [](std::uint32_t x) { return (x & 0x87FFFFFFu) | 0x38000000u; };
  const Wides w = map_wides([&](std::size_t i) { return number(t.wide[i]); });
  const Wides w2 = map_wides([&](std::size_t i) { return number(t.wide2[i]); });
  const WidePair v = load_wide(w.data());
  t.expect(values_of(mul_float(v, set_float(0.75f))) ==
               patterns_of(
                   w, [](float y, float x) { return y * x; }, 0.75f),
           "mul_float");
  t.expect(values_of(add_and_subtract(v, set_float(0x1.8p9f))) ==
               patterns_of(
                   w, [](float y, float x) { return (y + x) - x; }, 0x1.8p9f),
           "add_and_subtract");
  t.expect(values_of(add_float(v, load_wide(w2.data()))) == map_wides([&](std::size_t i) {
             return std::bit_cast<std::uint32_t>(std::bit_cast<float>(w[i]) +
                                                 std::bit_cast<float>(w2[i]));
           }),
           "add_float");
}

#if GRADWIRE_LANE_VECTORS

Words words_of_bytes(const ByteLanes& v) { return words_of_lanes(widen_bytes(v)); }
ByteLanes low_bytes_of(const Words& words) {
  return narrow_words(and_(load_lanes(words.data()), set_lanes(255)));
}

void check_bytes(LaneCase& t) {
  const Words a = map_words([&](std::size_t i) { return t.a[i] & 255; });
  const Words b = map_words([&](std::size_t i) { return t.b[i] & 255; });
  const ByteLanes va = low_bytes_of(a), vb = low_bytes_of(b);
  const auto in = [&](std::size_t i) { return (t.mask >> i & 1) != 0; };
  const auto is = [&](const ByteLanes& got, auto f, const char* name) {
    t.expect(words_of_bytes(got) == map_words([&](std::size_t i) { return f(i) & 255; }), name);
  };
  const ByteMask mask = narrow_mask(lanes_of_bits(t.mask));
  is(
      va, [&](std::size_t i) { return a[i]; }, "narrow_words/widen_bytes");
  is(
      set_bytes(200), [](std::size_t) { return 200; }, "set_bytes");
  is(
      add(va, vb), [&](std::size_t i) { return a[i] + b[i]; }, "add bytes");
  is(
      sub(va, vb), [&](std::size_t i) { return a[i] - b[i]; }, "sub bytes");
  is(
      and_(va, vb), [&](std::size_t i) { return a[i] & b[i]; }, "and_ bytes");
  is(
      upper_three_bits(va), [&](std::size_t i) { return a[i] >> 5; }, "upper_three_bits");
  is(
      add_one_where(mask, va), [&](std::size_t i) { return a[i] + in(i); }, "add_one_where");
  is(
      select(mask, va, vb), [&](std::size_t i) { return in(i) ? a[i] : b[i]; }, "select bytes");
  t.expect(
      words_of_lanes(join(va, vb)) == map_words([&](std::size_t i) { return a[i] | b[i] << 8; }),
      "join");
  t.expect(mask_bits(mask) == t.mask, "mask_bits bytes");
  t.expect(mask_bits(widen_mask(mask)) == t.mask, "widen_mask");
  t.expect(mask_bits(equal(va, select(mask, va, vb))) ==
               map_bits([&](std::size_t i) { return in(i) || a[i] == b[i]; }),
           "equal");
  t.expect(mask_bits(greater_signed(va, vb)) == map_bits([&](std::size_t i) {
             return static_cast<std::int8_t>(a[i]) > static_cast<std::int8_t>(b[i]);
           }),
           "greater_signed");
  const Lanes wa = load_lanes(t.a.data()), wb = load_lanes(t.b.data());
  t.expect(words_of_lanes(mul_low(wa, wb)) ==
               map_words([&](std::size_t i) { return std::uint32_t{t.a[i]} * t.b[i]; }),
           "mul_low");
  t.expect(words_of_lanes(mul_high(wa, wb)) ==
               map_words([&](std::size_t i) { return (std::uint32_t{t.a[i]} * t.b[i]) >> 16; }),
           "mul_high");
}

template <std::size_t kPieces>
void check_byte_table(LaneCase& t) {
  std::array<std::uint8_t, 16 * kPieces> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(t.b[i % kLaneCount] + 77 * i);
  }
  const Words index = map_words([&](std::size_t i) { return t.a[i] % table.size(); });
  t.expect(words_of_bytes(lookup(load_byte_table<kPieces>(table.data()), low_bytes_of(index))) ==
               map_words([&](std::size_t i) { return table[index[i]]; }),
           "lookup");
  const Words index2 = map_words([&](std::size_t i) { return t.c[i] % table.size(); });
  const ByteLanesPair pair = lookup(load_byte_table<kPieces>(table.data()),
                                    ByteLanesPair{{low_bytes_of(index), low_bytes_of(index2)}});
  t.expect(
      words_of_bytes(pair.of[0]) == map_words([&](std::size_t i) { return table[index[i]]; }) &&
          words_of_bytes(pair.of[1]) == map_words([&](std::size_t i) { return table[index2[i]]; }),
      "lookup of a pair");
}

void check_compress(LaneCase& t) {
  check_byte_table<1>(t);
  check_byte_table<2>(t);
  check_byte_table<8>(t);
  const ByteLanes minus_one = set_bytes(0xFF);
  t.expect(words_of_bytes(lookup(load_byte_table<1>(kCompressShuffles.bytes[0xA5]), minus_one)) ==
               Words{},
           "lookup of bit 7");

  const ByteMask mask = narrow_mask(lanes_of_bits(t.mask));
  const auto count = static_cast<std::size_t>(std::popcount(t.mask));
  Words packed{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    if ((t.mask >> i & 1) != 0) packed[next++] = t.a[i];
  }
  // 8 words behind the end belong to the operation, the rest to others.
  constexpr std::uint16_t kOther = 0x5AA5;
  std::vector<std::uint16_t> words(count + 9, kOther);
  auto* const begin = reinterpret_cast<std::byte*>(words.data());
  std::byte* const end = compress_store(load_lanes(t.a.data()), mask, begin);
  t.expect(end == begin + 2 * count, "compress_store end");
  t.expect(std::equal(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(count),
                      words.begin()),
           "compress_store");
  t.expect(words[count + 8] == kOther, "compress_store behind its end");

  // Words, and 16 bytes that may be read but are none.
  std::vector<std::byte> block(2 * count + 16, std::byte{0xEE});
  std::memcpy(block.data(), packed.data(), 2 * count);
  const std::byte* down = block.data() + 2 * count;
  const Lanes expanded = expand_load_down(mask, &down);
  t.expect(down == block.data(), "expand_load_down end");
  t.expect(words_of_lanes(expanded) ==
               map_words([&](std::size_t i) { return (t.mask >> i & 1) != 0 ? t.a[i] : 0; }),
           "expand_load_down");
}

#else

void check_bytes(LaneCase& t) {
  const Words &a = t.a, &b = t.b;
  const Lanes va = load_lanes(a.data()), vb = load_lanes(b.data());
  const Words n = map_words([&](std::size_t i) { return t.c[i] % 16; });
  const Lanes vn = load_lanes(n.data());
  const auto is = [&](Lanes got, auto f, const char* name) {
    t.expect(words_of_lanes(got) == map_words(f), name);
  };
  is(
      shift_right(va, vn), [&](std::size_t i) { return a[i] >> n[i]; }, "shift_right by lanes");
  is(
      shift_left(va, vn), [&](std::size_t i) { return a[i] << n[i]; }, "shift_left by lanes");
  const auto pair = [&](std::size_t i) { return std::uint32_t{a[i]} << 16 | b[i]; };
  is(
      funnel_right(va, vb, vn), [&](std::size_t i) { return pair(i) >> n[i]; }, "funnel_right");
  is(
      funnel_left(va, vb, vn), [&](std::size_t i) { return (pair(i) << n[i]) >> 16; },
      "funnel_left");
  is(
      lookup32(load_table32(b.data()), va), [&](std::size_t i) { return b[a[i] % 32]; },
      "lookup32");
  t.expect(mask_bits(test(va, vb)) == map_bits([&](std::size_t i) { return (a[i] & b[i]) != 0; }),
           "test");
}

void check_compress(LaneCase& t) {
  std::array<std::uint8_t, 128> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(t.b[i % kLaneCount] + 77 * i);
  }
  t.expect(words_of_lanes(lookup128(load_table128(table.data()), load_lanes(t.a.data()))) ==
               map_words([&](std::size_t i) { return table[t.a[i] % 128]; }),
           "lookup128");
  Words packed{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    if ((t.mask >> i & 1) != 0) packed[count++] = t.a[i];
  }
  std::array<std::uint16_t, 2 * kLaneCount> words{};
  auto* const begin = reinterpret_cast<std::byte*>(words.data());
  std::byte* const end = compress_store(load_lanes(t.a.data()), lanes_of_bits(t.mask), begin);
  t.expect(end == begin + 2 * count, "compress_store end");
  t.expect(std::equal(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(count),
                      words.begin()),
           "compress_store");
  const Lanes expanded = expand_load(lanes_of_bits(t.mask), load_lanes(t.b.data()),
                                     reinterpret_cast<const std::byte*>(packed.data()));
  t.expect(words_of_lanes(expanded) ==
               map_words([&](std::size_t i) { return (t.mask >> i & 1) != 0 ? t.a[i] : t.b[i]; }),
           "expand_load");
}

#endif  // GRADWIRE_LANE_VECTORS

bool check_lane_ops(LaneCase& t) {
  check_words(t);
  check_masks(t);
  check_order(t);
  check_wides(t);
  check_expand_wide(t);
  check_floats(t);
  check_bytes(t);
  check_compress(t);
  return true;
}

#else

bool check_lane_ops(LaneCase&) { return false; }

#endif  // GRADWIRE_HAVE_LANE_OPS

}  // namespace HWY_NAMESPACE
}  // namespace gradwire::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradwire::internal {
namespace {

HWY_EXPORT(check_lane_ops);

LaneCase random_case(std::mt19937_64& random, std::uint32_t mask) {
  LaneCase t;
  for (Words* words : {&t.a, &t.b, &t.c}) {
    for (std::uint16_t& word : *words) word = static_cast<std::uint16_t>(random());
  }
  for (Wides* wides : {&t.wide, &t.wide2}) {
    for (std::uint32_t& wide : *wides) wide = static_cast<std::uint32_t>(random());
  }
  // Zeros, ones and equal lanes, which random words hardly give.
  t.a[random() % kLaneCount] = 0;
  t.a[random() % kLaneCount] = 0xFFFF;
  t.b[random() % kLaneCount] = 0;
  const std::size_t same = random() % kLaneCount;
  t.b[same] = t.a[same];
  t.mask = mask;
  return t;
}

TEST(LaneOps, AsPlainLoops) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> masks = {0u, ~0u, 0x55555555u, 0xAAAAAAAAu, 0xFFFFu, 0xFFFF0000u};
  for (std::uint32_t lane = 0; lane < kLaneCount; ++lane) masks.push_back(1u << lane);
  // Every mask of each eight lanes.
  for (std::uint32_t bits = 0; bits < 256; ++bits) masks.push_back(0x01010101u * bits);
  for (int i = 0; i < 2000; ++i) {
    masks.push_back(static_cast<std::uint32_t>(random() & random()));
    masks.push_back(static_cast<std::uint32_t>(random() | random()));
  }
  for (const std::string_view target : simd_targets()) {
    use_simd_target(target);
    for (const std::uint32_t mask : masks) {
      LaneCase t = random_case(random, mask);
      if (!HWY_DYNAMIC_DISPATCH(check_lane_ops)(t)) break;
      ASSERT_EQ(t.wrong, "") << target << ", mask " << mask;
    }
  }
  use_simd_target(simd_targets().front());
}

}  // namespace
}  // namespace gradwire::internal
#endif  // HWY_ONCE
