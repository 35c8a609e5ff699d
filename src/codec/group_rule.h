// What the coded codecs do to a group before it is coded: its scale, and stochastic rounding.
#ifndef GRADWIRE_CODEC_GROUP_RULE_H_
#define GRADWIRE_CODEC_GROUP_RULE_H_

#include <cstdint>
#include <type_traits>

#include "codec/block_codec.h"
#include "codec/coded_block.h"
#include "core/counter_rng.h"
#include "quantize/float32_simd.h"
#include "quantize/stochastic_simd.h"
#include "quantize/value_range_simd.h"

namespace gradwire::internal {

// Constant, and cheap to make.
class GroupRule {
 public:
  explicit GroupRule(const CodecSpec& spec) noexcept
      : spec_(spec),
        step_form_(is_step_form(spec_)),
        filter_(has_option(spec_.options, BoundOptions::kFilter)),
        rms_(spec_.id != CodecId::kErrorBounded || spec_.scale == BoundScale::kRms),
        per_part_(has_option(spec_.options, BoundOptions::kPerPart)) {
    if (rms_) {
      factor_ = scale_factor(step_form_ ? step_factor(spec_) : 1.0);
    } else {
      exact_factor_ = exact_factor(step_factor(spec_));
    }
  }

  // True if scale() is group_scale with factor().
  bool is_group_rms() const noexcept { return rms_ && !per_part_; }
  std::uint64_t factor() const noexcept { return factor_; }
  // True if round() has something to do.
  bool rounds() const noexcept { return spec_.rounding == Rounding::kStochastic; }

  // Of a group that lies in `piece`.
  template <typename Format>
  GroupScale scale(const typename Format::Bits* values, std::uint32_t count,
                   const Piece& piece) const noexcept {
    if (is_group_rms()) return group_rms<Format>(values, count);
    const ValueRange range = value_range_simd<Format>(values, count);
    if (!per_part_) return scale_of<Format>(range, {}, 0);
    GroupScale scale = *piece.part_scale;
    scale.zero = range.zero();
    scale.negative_zero = scale.zero && range.negative_zero;
    return scale;
  }

  // Of values with this range; for `rms` also with these squares, relative to the unbiased A.
  template <typename Format>
  GroupScale scale_of(const ValueRange& range, const SquareSum& squares,
                      std::int32_t top) const noexcept {
    switch (spec_.scale) {
      case BoundScale::kRms:
        if (range.zero() || !range.finite()) return {.zero = range.zero()};
        return scale_from_squares(squares.sum, squares.finite, top, factor_);
      case BoundScale::kRange:
        return scale_of_range<Format>(range, exact_factor_);
      case BoundScale::kAbsMax:
        return scale_of_largest<Format>(range, exact_factor_);
      default:
        return scale_of_factor(range, exact_factor_);
    }
  }

  // Stochastic rounding of values of `piece` from its value `offset` on, in a group with the scale
  // `number`. False if nothing but zeros is left and the group is to be a zero group.
  template <typename Format>
  bool round(const BlockContext& context, const typename Format::Bits* values, std::uint32_t count,
             const Piece& piece, std::uint64_t offset, std::int32_t number,
             typename Format::Bits* rounded) const noexcept {
    const NoisePlace place{noise_key(spec_.seed, context.step, piece.tensor, context.sender,
                                     static_cast<std::uint8_t>(context.phase)),
                           piece.first_index + offset};
    if (step_form_) {
      return round_to_step_simd<Format>(values, count, {number, filter_}, place, rounded);
    }
    round_to_mantissa_simd<Format>(values, count, spec_.mantissa, place, rounded);
    return true;
  }

 private:
  template <typename Format>
  GroupScale group_rms(const typename Format::Bits* values, std::uint32_t count) const noexcept {
    if constexpr (std::is_same_v<Format, Float32Format>) {
      return group_scale_simd(values, count, factor_);
    } else {
      return group_scale_ref<Format>(values, count, factor_);
    }
  }

  const CodecSpec& spec_;
  const bool step_form_;
  const bool filter_;
  const bool rms_;
  const bool per_part_;
  std::uint64_t factor_ = 0;  // rms
  ScaleFactor exact_factor_;  // other scales
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_GROUP_RULE_H_
