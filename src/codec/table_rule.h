// What a table lets the encoder use, what its own tables look like, and how much it looks at to
// choose one (docs/format.md section 8).
#ifndef GRADWIRE_CODEC_TABLE_RULE_H_
#define GRADWIRE_CODEC_TABLE_RULE_H_

#include <cstdint>

#include "entropy/own_table.h"
#include "quantize/exponent_form_ref.h"
#include "quantize/step_form_ref.h"

namespace gradwire::internal {

// The tokens that `frequencies` let the encoder use: both kinds of tables have one run of them.
inline std::uint32_t largest_step(const Frequencies& frequencies) noexcept {
  std::uint32_t largest = 0;
  for (std::uint32_t token = 0; token <= kStepTokenMax; ++token) {
    if (!step_token_exists(token)) continue;
    if (frequencies[token] == 0) break;
    largest = step_token_last(token);
  }
  return largest;
}

inline TokenRange exponent_range(const Frequencies& frequencies) noexcept {
  TokenRange range;
  while (frequencies[range.first] == 0 && range.first < kExponentTokenMax) ++range.first;
  range.last = range.first;
  while (range.last < kExponentTokenMax && frequencies[range.last + 1] != 0) ++range.last;
  return range;
}

template <typename Format>
TableForm step_table_form() noexcept {
  TableForm form;
  form.lane_bits = step_lane_bits(Format::kMantissaBits);
  form.value_bits = 8 * sizeof(typename Format::Bits);
  form.fixed = 1u << kTokenEscape | 1u << 0 | 1u << 2;
  for (std::uint32_t token = 0; token <= kStepTokenMax; ++token) {
    if (step_token_exists(token)) form.run |= 1u << token;
  }
  return form;
}

template <typename Format>
TableForm exponent_table_form(MantissaSplit split) noexcept {
  TableForm form;
  form.lane_bits = exponent_lane_bits(split);
  form.value_bits = 8 * sizeof(typename Format::Bits);
  form.fixed = 1u << kTokenEscape | 1u << kExponentZero;
  form.run = (1u << (kExponentTokenMax + 1)) - 1;
  return form;
}

// Every how manyth group is looked at to choose a table. All of each where the coder of one lane
// takes far longer anyway, else a quarter. A 64th of the values takes a few percent of the time of
// the vector coder.
constexpr std::uint32_t sample_stride(std::uint64_t values) noexcept {
  if (values < 4096) return 1;
  return values < 8192 ? 2 : values < 32768 ? 4 : values < 131072 ? 16 : 32;
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_TABLE_RULE_H_
