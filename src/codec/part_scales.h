// Scales of whole parts, found before the blocks of a frame are coded.
#ifndef GRADWIRE_CODEC_PART_SCALES_H_
#define GRADWIRE_CODEC_PART_SCALES_H_

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "gradwire/codec.h"
#include "quantize/group_scale_ref.h"
#include "quantize/value_range_ref.h"

namespace gradwire::internal {

// What is known of a part so far. Sums and extremes of integers: the order in which runs of values
// are added does not matter.
struct PartSums {
  ValueRange range;
  SquareSum squares;
};

// Memory that calls reuse; vectors only grow.
struct PartScaleScratch {
  std::vector<PartSums> sums;
  std::vector<GroupScale> scales;  // one per part
};

// Finds the scales of the parts with one pass over their values, two for `rms`. Threads share it:
// prepare(); then, pass() times, reset() and work() on each of them; then finish().
class PartScaler {
 public:
  // May throw std::bad_alloc.
  PartScaler(const CodecSpec& spec, DType dtype, std::span<const Part> parts,
             PartScaleScratch* scratch);

  int passes() const noexcept;
  void begin_pass(int pass) noexcept;
  void work() noexcept;
  void finish() noexcept;

 private:
  // Values of one part that one thread takes at a time: what fits its cache.
  struct Run {
    std::size_t part = 0;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;
  };
  bool take(Run* run) noexcept;
  template <typename Format>
  PartSums sums_of(const Run& run) const noexcept;
  template <typename Format>
  void work_as() noexcept;
  template <typename Format>
  void finish_as() noexcept;

  const CodecSpec& spec_;
  const DType dtype_;
  const std::span<const Part> parts_;
  PartScaleScratch& scratch_;
  int pass_ = 0;
  std::mutex mutex_;  // guards what follows and the sums
  Run next_;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_PART_SCALES_H_
