#include "collective/send_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gradwire::internal {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

TEST(SendArena, PacksFramesAtTheirSize) {
  SendArena arena;
  const std::span<std::byte> first = arena.reserve(kMib);
  arena.keep(10);
  const std::span<std::byte> second = arena.reserve(kMib);
  EXPECT_EQ(second.data(), first.data() + 10);
  EXPECT_EQ(arena.reserve(100).data(), second.data()) << "not kept, so given again";
}

TEST(SendArena, FramesStayWhereTheyAre) {
  SendArena arena;
  std::vector<std::span<std::byte>> frames;
  for (int i = 0; i < 60; ++i) {  // several chunks
    frames.push_back(arena.reserve(kMib).first(kMib - 7));
    arena.keep(kMib - 7);
    std::memset(frames.back().data(), i, frames.back().size());
  }
  for (int i = 0; i < 60; ++i) {
    const auto& frame = frames[static_cast<std::size_t>(i)];
    EXPECT_EQ(frame.front(), static_cast<std::byte>(i));
    EXPECT_EQ(frame.back(), static_cast<std::byte>(i));
  }
}

TEST(SendArena, MemoryIsUsedAgain) {
  SendArena arena;
  const auto round = [&arena] {
    std::vector<const std::byte*> places;
    for (int i = 0; i < 40; ++i) {
      places.push_back(arena.reserve(kMib).data());
      arena.keep(kMib);
    }
    arena.reset();
    return places;
  };
  const auto first = round();
  EXPECT_EQ(round(), first);
}

TEST(SendArena, FramesBeyondAChunk) {
  SendArena arena;
  const std::span<std::byte> room = arena.reserve(40 * kMib);
  std::memset(room.data() + room.size() - 1, 1, 1);
  EXPECT_EQ(room.size(), 40 * kMib);
}

}  // namespace
}  // namespace gradwire::internal
