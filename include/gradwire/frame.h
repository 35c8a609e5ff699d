// What a frame says about itself: codec numbers, and where it belongs.
#ifndef GRADWIRE_FRAME_H_
#define GRADWIRE_FRAME_H_

#include <cstdint>
#include <string_view>

namespace gradwire {

// Numbers of docs/format.md.
enum class CodecId : std::uint8_t {
  kNone = 0,
  kCast = 1,
  kBlock = 2,
  kLossless = 3,
  kNearLossless = 4,
  kErrorBounded = 5,
  // Baselines of the field, docs/baselines.md.
  kNatural = 16,
  kMxfp8 = 17,
  kMxfp4 = 18,
  kQsgd = 19,
  kTernGrad = 20,
  kSign = 21,
  kTopK = 22,
  kHadamard = 23,
  kCocktail = 24,
};

enum class Rounding : std::uint8_t { kNearest = 0, kStochastic = 1 };

// Entropy coder of the coded codecs (lossless, near_lossless, error_bounded).
enum class Coder : std::uint8_t { kNone = 0, kTans = 1, kHuffman = 2 };

// What the bound of `error_bounded` is relative to.
enum class BoundScale : std::uint8_t {
  kNone = 0,
  kRms = 1,
  kRange = 2,
  kAbsMax = 3,
  kAbsolute = 4
};
// Options of `error_bounded`, bits of one number.
enum class BoundOptions : std::uint8_t { kNone = 0, kFilter = 1, kPerPart = 2 };
constexpr bool has_option(BoundOptions options, BoundOptions option) noexcept {
  return (static_cast<unsigned>(options) & static_cast<unsigned>(option)) != 0;
}

// What a frame is for. Numbers of docs/format.md.
enum class Op : std::uint8_t {
  kNone = 0,
  kAllReduce = 1,
  kReduceScatter = 2,
  kAllGather = 3,
  kBroadcast = 4,
  kError = 255,
};
enum class Phase : std::uint8_t { kWhole = 0, kContribution = 1, kResult = 2 };
enum class Reduction : std::uint8_t { kNone = 0, kSum = 1, kAvg = 2 };
enum class Schedule : std::uint8_t { kNone = 0, kDirect = 1 };

// "all_reduce", "contribution", "avg", "direct", ...; "unknown" for a number that names nothing.
std::string_view op_name(Op op) noexcept;
std::string_view scale_name(BoundScale scale) noexcept;  // "rms", "range", "absmax", "absolute"
std::string_view coder_name(Coder coder) noexcept;       // "none", "tans", "huffman"
std::string_view phase_name(Phase phase) noexcept;
std::string_view reduction_name(Reduction reduction) noexcept;
std::string_view schedule_name(Schedule schedule) noexcept;

// The fields of the header that say where a frame belongs; all zero for encode() to a file.
struct FrameContext {
  Op op = Op::kNone;
  Phase phase = Phase::kWhole;
  Reduction reduction = Reduction::kNone;
  Schedule schedule = Schedule::kNone;
  std::uint32_t world = 0;
  std::uint32_t sender = 0;
  std::uint64_t group_id = 0;
  std::uint64_t step = 0;      // optimizer step
  std::uint64_t sequence = 0;  // number of the collective in its group
  std::uint32_t segment = 0;
  std::uint32_t segment_count = 1;
  std::uint64_t first_value = 0;  // index of the frame's first value in the collective's tensor
};

}  // namespace gradwire

#endif  // GRADWIRE_FRAME_H_
