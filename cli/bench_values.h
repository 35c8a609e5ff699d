// Bits and groups of values, worked out from docs/format.md alone: a second, slow and plain
// implementation, so that the figures of `gradwire bench` do not repeat a mistake of the codecs.
#ifndef GRADWIRE_CLI_BENCH_VALUES_H_
#define GRADWIRE_CLI_BENCH_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench.h"
#include "gradwire/tensor_view.h"

namespace gradwire::cli {

// A floating type: a sign, `exponent_bits` and `mantissa_bits`.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int max_exponent() const { return (1 << exponent_bits) - 1; }
  int exponent(std::uint64_t bits) const {
    return static_cast<int>(bits >> mantissa_bits) & max_exponent();
  }
  std::uint64_t mantissa(std::uint64_t bits) const {
    return bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  }
  bool negative(std::uint64_t bits) const { return bits >> (exponent_bits + mantissa_bits) != 0; }
  bool finite(std::uint64_t bits) const { return exponent(bits) != max_exponent(); }
  bool zero(std::uint64_t bits) const { return exponent(bits) == 0 && mantissa(bits) == 0; }
  double value(std::uint64_t bits) const;  // exact
};
FloatFormat float_format(DType dtype);

// Values of one type, by number.
class Values {
 public:
  Values(const std::byte* data, DType dtype)
      : data_(data), size_(dtype_size(dtype)), format_(float_format(dtype)) {}
  std::uint64_t bits(std::uint64_t i) const;
  double operator[](std::uint64_t i) const { return format_.value(bits(i)); }
  const FloatFormat& format() const { return format_; }

 private:
  const std::byte* data_;
  std::size_t size_;
  FloatFormat format_;
};

// A group of values (format.md section 2) of one copy of the input.
struct Group {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::uint64_t block = 0;
  std::uint64_t part_begin = 0;  // the tensor that it lies in
  std::uint64_t part_count = 0;
};
std::vector<Group> cut_groups(const BenchInput& input, const CodecSpec& codec);

// floor(log2(X RMS)) of the group's finite values (section 8, "Mean square of a group");
// nullopt where that is no number: no finite value, or y = 0. `least`: exponent of the least normal
// number of the type that the values count as.
struct GroupScale {
  bool any_finite = false;
  std::optional<int> exponent;
};
GroupScale group_scale(const Values& values, const Group& group, double x, int least);

// True if all values of the group are zero; with `signs`, only +0 counts.
bool is_zero_group(const Values& values, const Group& group, bool signs);

// True for codecs of the step form.
bool is_step_form(const CodecSpec& codec);
// Step form: k of the groups one after the other, of each that is no zero group.
class StepExponents {
 public:
  StepExponents(const Values& values, const CodecSpec& codec) : values_(values), codec_(codec) {}
  int of(const Group& group);

 private:
  std::optional<int> scale_exponent(const Group& values) const;

  const Values& values_;
  const CodecSpec& codec_;
  // Codecs with one scale for a tensor: that of the last one asked for.
  std::uint64_t known_part_ = ~std::uint64_t{0};
  std::optional<int> part_exponent_;
};

// Codec `block`.
struct BlockScale {
  bool raw = false;
  std::uint16_t bits = 0;  // the scale as bfloat16
  float step = 0;          // d of section 4.2; 0 for a group of zeros
};
BlockScale block_scale(const Values& values, const Group& group, int bits);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_BENCH_VALUES_H_
