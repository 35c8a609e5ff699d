#include "codec/part_scales.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "codec/group_rule.h"
#include "core/fp_environment.h"
#include "quantize/float32_simd.h"
#include "quantize/half_float.h"
#include "quantize/value_range_simd.h"

namespace gradwire::internal {
namespace {

constexpr std::uint64_t kRunValues = 65536;

// The largest exponent field of the finite values, at least 1.
template <typename Format>
std::int32_t largest_field(const ValueRange& range) noexcept {
  if (!range.finite()) return 1;
  const std::int64_t largest = std::max(-range.lowest, range.highest);
  return std::max(static_cast<std::int32_t>(largest >> Format::kMantissaBits), 1);
}

template <typename Format>
SquareSum squares_of(const typename Format::Bits* values, std::uint32_t count,
                     const ValueRange& range) noexcept {
  const std::int32_t top = largest_field<Format>(range);
  if constexpr (std::is_same_v<Format, Float32Format>) {
    if (!range.nonfinite) return square_sum_simd(values, count, top);
  }
  return square_sum_ref<Format>(values, count, top);
}

// Calls visit() with the values at `data` a group at a time: halves as float32, others copied where
// they lie askew.
template <typename Format, typename Visit>
void for_each_float(const std::byte* data, std::uint64_t count, Visit visit) noexcept {
  using Bits = typename Format::Bits;
  using Float = std::conditional_t<kIsHalf<Format>, Float32Format, Format>;
  const bool in_place =
      !kIsHalf<Format> && reinterpret_cast<std::uintptr_t>(data) % alignof(Bits) == 0;
  std::array<typename Float::Bits, kMaxGroup> copied;
  for (std::uint64_t first = 0; first < count; first += kMaxGroup) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxGroup, count - first));
    const std::byte* const from = data + first * sizeof(Bits);
    if constexpr (kIsHalf<Format>) {
      widen_halves<Format>(from, n, copied.data());
    } else if (!in_place) {
      std::memcpy(copied.data(), from, n * sizeof(Bits));
    }
    visit(Float{}, in_place ? reinterpret_cast<const typename Float::Bits*>(from) : copied.data(),
          n);
  }
}

}  // namespace

PartScaler::PartScaler(const CodecSpec& spec, DType dtype, std::span<const Part> parts,
                       PartScaleScratch* scratch)
    : spec_(spec), dtype_(dtype), parts_(parts), scratch_(*scratch) {
  if (scratch->sums.size() < parts.size()) scratch->sums.resize(parts.size());
  if (scratch->scales.size() < parts.size()) scratch->scales.resize(parts.size());
  std::fill_n(scratch->sums.begin(), parts.size(), PartSums{});
}

int PartScaler::passes() const noexcept { return spec_.scale == BoundScale::kRms ? 2 : 1; }

void PartScaler::begin_pass(int pass) noexcept {
  pass_ = pass;
  next_ = Run{};
}

bool PartScaler::take(Run* run) noexcept {
  const std::lock_guard lock(mutex_);
  while (next_.part < parts_.size() && next_.offset == parts_[next_.part].values.count) {
    next_ = {next_.part + 1, 0, 0};
  }
  if (next_.part == parts_.size()) return false;
  *run = next_;
  run->count = std::min(kRunValues, parts_[run->part].values.count - run->offset);
  next_.offset += run->count;
  return true;
}

template <typename Format>
PartSums PartScaler::sums_of(const Run& run) const noexcept {
  using Bits = typename Format::Bits;
  const auto* const data = static_cast<const std::byte*>(parts_[run.part].values.data);
  // In the second pass nobody writes the ranges.
  const ValueRange& range = scratch_.sums[run.part].range;
  PartSums sums;
  for_each_float<Format>(data + run.offset * sizeof(Bits), run.count,
                         [&](auto format, const auto* values, std::uint32_t count) {
                           using Float = decltype(format);
                           if (pass_ == 0) {
                             sums.range.add(value_range_simd<Float>(values, count));
                           } else {
                             sums.squares.add(squares_of<Float>(values, count, range));
                           }
                         });
  return sums;
}

template <typename Format>
void PartScaler::work_as() noexcept {
  for (Run run; take(&run);) {
    const PartSums sums = sums_of<Format>(run);
    const std::lock_guard lock(mutex_);
    PartSums& total = scratch_.sums[run.part];
    if (pass_ == 0) {
      total.range.add(sums.range);
    } else {
      total.squares.add(sums.squares);
    }
  }
}

template <typename Format>
void PartScaler::finish_as() noexcept {
  const GroupRule rule(spec_);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const PartSums& sums = scratch_.sums[part];
    scratch_.scales[part] = rule.scale_of<Format>(
        sums.range, sums.squares, largest_field<Format>(sums.range) - Format::kBias);
  }
}

void PartScaler::work() noexcept {
  const FpEnvironment environment;
  switch (dtype_) {
    case DType::kFloat64:
      return work_as<Float64Format>();
    case DType::kFloat16:
      return work_as<Float16Format>();
    case DType::kBFloat16:
      return work_as<BFloat16Format>();
    default:
      return work_as<Float32Format>();
  }
}

void PartScaler::finish() noexcept {
  if (dtype_ == DType::kFloat64) return finish_as<Float64Format>();
  finish_as<Float32Format>();  // halves were taken as float32
}

}  // namespace gradwire::internal
