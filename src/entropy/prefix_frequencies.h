// Frequencies of Huffman-7 (docs/format.md section 8): powers of two, chosen so that the counted
// tokens take the fewest bits.
#ifndef GRADWIRE_ENTROPY_PREFIX_FREQUENCIES_H_
#define GRADWIRE_ENTROPY_PREFIX_FREQUENCIES_H_

#include <array>
#include <cstdint>

#include "entropy/tans_format.h"

namespace gradwire::internal {

// `least`: for each of at least two tokens a power of two, the smallest frequency that it may have;
// 0 for tokens that the table does not hold. At least one is 1, and the sum is at most 128.
Frequencies fit_prefix_frequencies(const std::array<std::uint32_t, kTokenCount>& counts,
                                   const Frequencies& least) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_PREFIX_FREQUENCIES_H_
