#include "support/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>

#include "core/endian.h"
#include "support/frame_fixup.h"

namespace gradwire::test {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

constexpr std::size_t kHeader = 128, kLengthField = 72, kLengthFieldEnd = 80;

std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

// Half of the changes go to header, part table and index, where most of the checks are.
std::size_t place(Random& random, const Bytes& frame) {
  const std::size_t near = std::min<std::size_t>(frame.size(), kHeader + 64);
  return below(random, below(random, 2) == 0 ? near : frame.size());
}

void put_number(Random& random, Bytes& frame) {
  static constexpr std::uint64_t kHard[] = {0,
                                            1,
                                            2,
                                            127,
                                            128,
                                            255,
                                            256,
                                            4095,
                                            4096,
                                            0x7FFF,
                                            0x8000,
                                            0xFFFF,
                                            0x7FFFFFFF,
                                            0x80000000,
                                            0xFFFFFFFF,
                                            0x7FFFFFFFFFFFFFFF,
                                            0x8000000000000000,
                                            0xFFFFFFFFFFFFFFFF};
  std::byte bytes[8];
  internal::store_le(bytes, kHard[below(random, std::size(kHard))]);
  const std::size_t size = std::size_t{1} << below(random, 4);
  const std::size_t at = place(random, frame) / size * size;
  for (std::size_t i = 0; i < size && at + i < frame.size(); ++i) frame[at + i] = bytes[i];
}

void change(Random& random, Bytes& frame) {
  const std::size_t at = place(random, frame);
  const auto here = frame.begin() + static_cast<std::ptrdiff_t>(at);
  const std::size_t run = std::min(frame.size() - at, std::size_t{1} << below(random, 6));
  switch (below(random, 7)) {
    case 0:
      frame[at] ^= std::byte{1} << static_cast<int>(below(random, 8));
      break;
    case 1:
      frame[at] = static_cast<std::byte>(random() & 0xFF);
      break;
    case 2:
    case 3:
      put_number(random, frame);
      break;
    case 4:
      frame.erase(here, here + static_cast<std::ptrdiff_t>(run));
      break;
    case 5:
      frame.insert(here, run, static_cast<std::byte>(random() & 0xFF));
      break;
    default: {
      const std::size_t from = below(random, frame.size() - run + 1);
      std::memmove(frame.data() + at, frame.data() + from, run);
    }
  }
}

}  // namespace

Bytes mutated(Bytes frame, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t changes = 1 + below(random, 8); changes > 0 && !frame.empty(); --changes) {
    change(random, frame);
  }
  if (below(random, 8) == 0) return frame;
  if (frame.size() >= kLengthFieldEnd && below(random, 8) != 0) {
    internal::store_le(frame.data() + kLengthField, std::uint64_t{frame.size()});
  }
  fix_checksums(frame);
  return frame;
}

}  // namespace gradwire::test
