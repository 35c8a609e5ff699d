// What encoder and decoder of `block` share (docs/format.md 4.2): a group of values is a scale
// (bfloat16) and one small two's complement integer per value.
#ifndef GRADWIRE_QUANTIZE_BLOCK_INT_FORMAT_H_
#define GRADWIRE_QUANTIZE_BLOCK_INT_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace gradwire::internal {

inline constexpr std::size_t kMostBlockGroup = 4096;  // values
// Scales, as bit patterns of bfloat16.
inline constexpr std::uint16_t kZeroGroupScale = 0;
inline constexpr std::uint16_t kRawGroupScale = 0x7FC0;
inline constexpr std::uint16_t kLeastBlockScale = (127 - 110) << 7;  // 2^-110
inline constexpr std::uint16_t kInfScale = 0x7F80;

}  // namespace gradwire::internal

#endif  // GRADWIRE_QUANTIZE_BLOCK_INT_FORMAT_H_
