// The states of 64 lanes as vectors want them; what encoder and decoder in vector registers share.
#ifndef GRADWIRE_ENTROPY_TANS_VECTOR_H_
#define GRADWIRE_ENTROPY_TANS_VECTOR_H_

#include <array>
#include <cstdint>

#include "entropy/tans_format.h"

namespace gradwire::internal {

// Element i of each array belongs to lane i. N0, N1, N2, position and state are those of
// docs/format.md 5.1, but that the encoder's states run from 128 to 255.
struct TansVectorLanes {
  alignas(64) std::array<std::uint16_t, kMaxLanes> n0{};
  alignas(64) std::array<std::uint16_t, kMaxLanes> n1{};
  alignas(64) std::array<std::uint16_t, kMaxLanes> n2{};
  alignas(64) std::array<std::uint16_t, kMaxLanes> position{};
  alignas(64) std::array<std::uint16_t, kMaxLanes> state{};
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_VECTOR_H_
