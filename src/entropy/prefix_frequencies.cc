// Every token starts with its least frequency, and what is left of the 128 slots is spent on
// doubling: from w to 2w slots costs w slots and saves a bit for each of the token's values. So
// doublings are coins of width w and value c[t], and those worth most in a given width are found by
// package-merge (Larmore, Hirschberg 1990): from the narrowest to the widest, the best coin fills a
// bit of the width and the others pair up to packages, which compete with the coins twice as wide.
//
// A coin is worth as much as the next wider one of its token, and among equals packages stand
// first: so no doubling is taken before the one that it builds on. All coins together are 128 n
// less the sum of the least frequencies wide, n tokens, and that is what is to be filled, modulo
// 128: so what is left of a list after its best has filled a bit is always even.
//
// What is taken of a list is a prefix of it. So it is enough to note which of its members are
// packages: from the widest list down, p packages taken are 2p members taken of the list below,
// behind the one that filled its bit.
#include "entropy/prefix_frequencies.h"

#include <bit>

namespace gradwire::internal {
namespace {

constexpr std::uint32_t kWidths = kTansStateBits;  // 1, 2, 4, ..., 64

// Values by falling size. Each list is at most 32 coins and half of the list below.
struct CoinList {
  std::array<std::uint64_t, 64> values{};
  std::uint32_t size = 0;
  std::uint64_t packages = 0;  // bit i: member i is a package

  void add(std::uint64_t value, bool is_package) noexcept {
    packages |= std::uint64_t{is_package} << size;
    values[size++] = value;
  }
};

struct Coin {
  std::uint32_t value;
  std::uint8_t token;
};

struct Coins {
  std::array<Coin, kTokenCount> all;
  std::uint32_t size = 0;
};

// A coin for each token of the table, by falling value, the lowest token of equal ones first.
Coins sort_coins(const std::array<std::uint32_t, kTokenCount>& counts,
                 const Frequencies& least) noexcept {
  Coins coins;
  for (std::uint32_t token = 0; token < kTokenCount; ++token) {
    if (least[token] == 0) continue;
    std::uint32_t at = coins.size++;
    for (; at > 0 && coins.all[at - 1].value < counts[token]; --at) {
      coins.all[at] = coins.all[at - 1];
    }
    coins.all[at] = {counts[token], static_cast<std::uint8_t>(token)};
  }
  return coins;
}

// The coins of a width, and the packages that the list below makes when its first `used` are gone.
CoinList merge(const Coins& coins, const Frequencies& least, std::uint32_t width,
               const CoinList& below, std::uint32_t used) noexcept {
  CoinList list;
  std::uint32_t pair = used;
  const auto add_packages = [&](std::uint64_t at_least) {
    for (; pair + 1 < below.size; pair += 2) {
      const std::uint64_t value = below.values[pair] + below.values[pair + 1];
      if (value < at_least) break;
      list.add(value, true);
    }
  };
  for (std::uint32_t i = 0; i < coins.size; ++i) {
    if (least[coins.all[i].token] > 1u << width) continue;
    add_packages(coins.all[i].value);
    list.add(coins.all[i].value, false);
  }
  add_packages(0);
  return list;
}

}  // namespace

Frequencies fit_prefix_frequencies(const std::array<std::uint32_t, kTokenCount>& counts,
                                   const Frequencies& least) noexcept {
  const Coins coins = sort_coins(counts, least);
  std::uint32_t left = kTansStates;
  for (const std::uint8_t slots : least) left -= slots;
  const auto bit = [left](std::uint32_t width) { return left >> width & 1; };

  std::array<CoinList, kWidths> lists;
  lists[0] = merge(coins, least, 0, CoinList{}, 0);
  for (std::uint32_t width = 1; width < kWidths; ++width) {
    lists[width] = merge(coins, least, width, lists[width - 1], bit(width - 1));
  }

  Frequencies f = least;
  std::uint32_t packages = 0;
  for (std::uint32_t width = kWidths; width-- > 0;) {
    const std::uint32_t taken = bit(width) + 2 * packages;
    packages = static_cast<std::uint32_t>(
        std::popcount(lists[width].packages & ~(~std::uint64_t{0} << taken)));
    std::uint32_t doublings = taken - packages;
    for (std::uint32_t i = 0; doublings > 0; ++i) {
      const std::uint32_t token = coins.all[i].token;
      if (least[token] > 1u << width) continue;
      f[token] = static_cast<std::uint8_t>(2 * f[token]);
      --doublings;
    }
  }
  return f;
}

}  // namespace gradwire::internal
