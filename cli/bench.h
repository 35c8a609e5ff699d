// Parts of `gradwire bench`: what is measured, and what is worked out from decoded values.
#ifndef GRADWIRE_CLI_BENCH_H_
#define GRADWIRE_CLI_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gradwire/codec.h"
#include "gradwire/status.h"
#include "gradwire/tensor_view.h"

namespace gradwire::cli {

// All tensors of one type of a file, `copies` times one after the other.
struct BenchInput {
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> counts;  // values of each tensor of one copy
  std::uint64_t values = 0;           // of one copy
  std::uint64_t copies = 1;
  std::vector<std::byte> data;
};

struct BenchMeasure {
  double encoded_bytes = 0;  // of the whole frame, all copies
  double encode_gbps = 0;    // 10^9 bytes of the original per second, as the others
  double decode_gbps = 0;
  double memcpy_gbps = 0;
  unsigned threads = 1;
  std::vector<std::byte> decoded;  // the first copy
};

// Encodes all copies as one frame and decodes it, `runs` times, on that many threads (0: one for
// each CPU).
Result<BenchMeasure> measure(const BenchInput& input, const CodecSpec& codec, int runs,
                             unsigned threads);

struct BenchError {
  double rel_l2 = 0;
  std::optional<double> worst_tensor_rel_l2;   // of tensors of 1,024 values or more
  std::optional<double> max_error_over_bound;  // nothing for codecs without a bound
};
BenchError error_of(const BenchInput& input, std::span<const std::byte> decoded,
                    const CodecSpec& codec);

// Bits per value of the quantized values by order-0 entropy with one table for the file, scales
// counted; nothing for codecs that do not quantize (bench_entropy.cc says what is counted).
std::optional<double> entropy_bits(const BenchInput& input, std::span<const std::byte> decoded,
                                   const CodecSpec& codec);

// Ratio that a lossless coder reaches with sign and mantissa raw and an order-0 exponent table
// for each 64Ki values, tables not counted; nothing where there are no values.
std::optional<double> reference_ratio(const BenchInput& input);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_BENCH_H_
