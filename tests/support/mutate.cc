#include "support/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/endian.h"
#include "support/frame_fixup.h"

namespace gradwire::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeader = 128, kLengthField = 72, kLengthFieldEnd = 80;
constexpr std::size_t kIndexEntry = 32;

// splitmix64: starts in no time, unlike the generators of the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0xD1342543DE82EF95u) {}
  std::uint64_t operator()() {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

 private:
  std::uint64_t state_;
};

// Near enough to uniform for ends far below 2^32.
std::size_t below(Random& random, std::size_t end) {
  return static_cast<std::size_t>((random() >> 32) * end >> 32);
}

// Where index and blocks begin, as far as the frame tells the truth.
struct Places {
  explicit Places(const Bytes& frame) {
    if (frame.size() < kHeader) return;
    const std::size_t parts = internal::load_le<std::uint32_t>(frame.data() + 52);
    blocks = internal::load_le<std::uint32_t>(frame.data() + 56);
    const std::size_t metadata = internal::load_le<std::uint32_t>(frame.data() + 60);
    index = kHeader + 8 * parts;
    data = index + kIndexEntry * blocks + metadata;
  }
  std::size_t blocks = 0;
  std::size_t index = 0;
  std::size_t data = 0;
};

// Where the changes of one frame go. Most bytes of the header are refused whatever they become, so
// three frames in four keep it, and half keep all that stands before the blocks' bytes.
std::size_t first_place(Random& random, const Bytes& frame) {
  const Places places(frame);
  const std::size_t choice = below(random, 8);
  const std::size_t first = choice < 4 ? places.data : choice < 6 ? places.index : 0;
  return first < frame.size() ? first : 0;
}

// The last block takes what there is, so that its bytes are looked at though some came or went.
void fit_last_block(Bytes& frame) {
  const Places places(frame);
  if (places.blocks == 0 || places.data > frame.size()) return;
  std::size_t others = 0;
  for (std::size_t block = 0; block + 1 < places.blocks; ++block) {
    others += internal::load_le<std::uint32_t>(frame.data() + places.index + kIndexEntry * block);
  }
  const std::size_t rest = frame.size() - places.data;
  if (others > rest) return;
  std::byte* const entry = frame.data() + places.index + kIndexEntry * (places.blocks - 1);
  internal::store_le(entry, static_cast<std::uint32_t>(rest - others));
}

// Half of the changes go to the start of the range, where most of the checks are.
std::size_t place(Random& random, const Bytes& frame, std::size_t first) {
  if (first >= frame.size()) first = 0;  // bytes were taken out
  const std::size_t near = std::min<std::size_t>(frame.size(), first < kHeader ? 192 : first + 64);
  const std::size_t end = below(random, 2) == 0 ? near : frame.size();
  return end > first ? first + below(random, end - first) : first;
}

void put_number(Random& random, Bytes& frame, std::size_t first) {
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
  const std::size_t at = place(random, frame, first) / size * size;
  for (std::size_t i = 0; i < size && at + i < frame.size(); ++i) frame[at + i] = bytes[i];
}

void change(Random& random, Bytes& frame, std::size_t first) {
  const std::size_t at = place(random, frame, first);
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
      put_number(random, frame, first);
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

void change_some(Random& random, Bytes& frame) {
  const std::size_t first = first_place(random, frame);
  for (std::size_t changes = 1 + below(random, 1 + below(random, 8)); changes > 0 && !frame.empty();
       --changes) {
    change(random, frame, first);
  }
}

}  // namespace

Bytes damaged(Bytes frame, std::uint64_t seed) {
  Random random(seed);
  change_some(random, frame);
  return frame;
}

Bytes mutated(Bytes frame, std::uint64_t seed) {
  Random random(seed);
  const std::size_t size = frame.size();
  change_some(random, frame);
  if (below(random, 8) == 0) return frame;
  if (frame.size() >= kLengthFieldEnd && below(random, 8) != 0) {
    internal::store_le(frame.data() + kLengthField, std::uint64_t{frame.size()});
  }
  if (frame.size() != size && below(random, 8) != 0) fit_last_block(frame);
  fix_checksums(frame);
  return frame;
}

}  // namespace gradwire::test
