// Ranges of header fields (docs/format.md 1.1), for reader, writer and CodecSpec::parse.
#ifndef GRADWIRE_FRAME_LIMITS_H_
#define GRADWIRE_FRAME_LIMITS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "gradwire/frame.h"
#include "gradwire/tensor_view.h"

namespace gradwire::internal {

// Numbers from `least` to `most` that are multiples of `multiple`.
struct Range {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  std::uint32_t multiple = 1;

  constexpr bool contains(std::uint64_t value) const noexcept {
    return value >= least && value <= most && value % multiple == 0;
  }
};

inline constexpr Range kBlockValuesRange{4096, 1048576, 4096};
inline constexpr Range kCodedGroupRange{64, 4096, 64};
inline constexpr Range kBlockGroupRange{8, 4096, 8};
inline constexpr Range kMantissaRange{2, 16, 1};
inline constexpr double kLeastStep = 0x1p-8;
inline constexpr double kMostStep = 8.0;

constexpr bool is_block_bits(std::uint32_t bits) noexcept {
  return bits == 4 || bits == 6 || bits == 8;
}
constexpr bool is_cast_dtype(DType dtype) noexcept {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}
constexpr bool is_coded(CodecId codec) noexcept {
  return codec == CodecId::kLossless || codec == CodecId::kNearLossless;
}

// Name of a codec as in CodecSpec text; "unknown" for a number that names none.
std::string_view codec_name(CodecId codec) noexcept;
// All element types, in the order of their numbers.
std::span<const DType> all_dtypes() noexcept;
// Whether frames of this codec may hold this type.
bool codec_takes(CodecId codec, DType dtype) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_FRAME_LIMITS_H_
