// Random groups through whole frames at 1.0 x the bound, and random collectives.
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/counter_rng.h"
#include "exhaustive/cases.h"
#include "support/bounds.h"
#include "support/random_collective.h"

namespace gradwire::test {
namespace {

constexpr std::uint64_t kFrameValues = 65536;
constexpr std::uint64_t kGroupValues = 64;  // the smallest group of all these codecs

std::uint64_t chunk_seed(std::uint64_t seed, std::uint64_t chunk) {
  return internal::mix64(internal::mix64(seed) + chunk);
}

// Values whose exponents lie around one of the group's own, by the group as gradients do, evenly
// over up to 64 octaves, with many zeros, or with NaN, infinities and subnormals among them.
class GroupMaker {
 public:
  explicit GroupMaker(std::uint64_t seed) : state_(seed) {}

  void make(std::span<std::uint32_t> group) {
    const std::uint64_t choice = next();
    const auto top = static_cast<std::uint32_t>(choice % 255);
    const auto octaves = static_cast<std::uint32_t>(1 + (choice >> 8) % 64);
    for (std::uint32_t& value : group) value = draw(choice >> 16 & 3, top, octaves);
  }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    return internal::mix64(state_);
  }

  std::uint32_t draw(std::uint64_t shape, std::uint32_t top, std::uint32_t octaves) {
    const std::uint64_t bits = next();
    const auto low = static_cast<std::uint32_t>(bits);
    const auto high = static_cast<std::uint32_t>(bits >> 32);
    const std::uint32_t sign_and_mantissa = low & 0x807FFFFFu;
    if (shape == 2 && high % 8 != 0) return low & 0x80000000u;
    if (shape == 3 && high % 16 == 0) return (high & 0x100u) != 0 ? low | 0x7F800000u : low;
    const std::uint32_t down =
        shape == 0 ? static_cast<std::uint32_t>(std::countr_zero(high | 1u << 20)) : high % octaves;
    return sign_and_mantissa | (top > down ? top - down : 0) << 23;
  }

  std::uint64_t state_;
};

struct GroupCheck {
  CodecSpec spec;
  std::uint64_t seed = 0;
  Tensor given{DType::kFloat32, kFrameValues};
  Tensor decoded{DType::kFloat32, kFrameValues};
  std::vector<std::byte> frame = {};
  std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>();

  std::string operator()(std::uint64_t chunk) {
    GroupMaker maker(chunk_seed(seed, chunk));
    std::array<std::uint32_t, kGroupValues> group;
    for (std::uint64_t begin = 0; begin < kFrameValues; begin += kGroupValues) {
      maker.make(group);
      std::memcpy(given.bytes.data() + begin * sizeof(group[0]), group.data(), sizeof(group));
    }
    std::string text = code_frame(spec, given, *workspace, &frame, &decoded);
    return text.empty() ? bound_violation(spec, given, decoded, 0) : text;
  }
};

constexpr std::uint64_t kCollectivesOfChunk = 10;

struct CollectiveCheck {
  std::uint64_t seed = 0;

  std::string operator()(std::uint64_t chunk) const {
    std::mt19937_64 random(chunk_seed(seed, chunk));
    for (std::uint64_t i = 0; i < kCollectivesOfChunk; ++i) {
      std::string text = testing::collective_violation(testing::random_collective(random), random);
      if (!text.empty()) return text;
    }
    return {};
  }
};

}  // namespace

void add_random_cases(std::uint64_t seed, std::vector<ExhaustiveCase>* cases) {
  constexpr std::uint64_t kGroups = std::uint64_t{1} << 27;  // of each codec: 1.5 x 10^9 in all
  constexpr std::uint64_t kGroupsOfChunk = kFrameValues / kGroupValues;
  for (const char* const text :
       {"near_lossless:group=64", "near_lossless:step=1,group=64", "near_lossless:step=.3,group=64",
        "near_lossless:mantissa=6,group=64", "error_bounded:bound=1,group=64",
        "error_bounded:bound=.01,scale=range,group=64,filter=on",
        "near_lossless:mantissa=1,rounding=stochastic,group=64",
        "block:bits=8,rounding=nearest,group=64", "block:bits=4,rounding=nearest,group=64",
        "block:bits=8,group=64", "block:bits=4,group=64"}) {
    const CodecSpec spec = *CodecSpec::parse(text);
    cases->push_back(
        {.name = "random groups of " + std::string(text),
         .promise = "N2",
         .chunks = kGroups / kGroupsOfChunk,
         .patterns = kGroupsOfChunk,
         .make_check = [=] { return ChunkCheck(GroupCheck{.spec = spec, .seed = seed}); },
         .kind = "groups",
         .unit = "groups",
         .cost = kFrameValues});
  }
  cases->push_back({.name = "random collectives",
                    .promise = "C1",
                    .chunks = 10000,
                    .patterns = kCollectivesOfChunk,
                    .make_check = [=] { return ChunkCheck(CollectiveCheck{seed}); },
                    .kind = "collectives",
                    .unit = "collectives",
                    .cost = 1 << 18});
}

}  // namespace gradwire::test
