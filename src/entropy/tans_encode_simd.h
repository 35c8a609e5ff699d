// The encoder of 64 lanes in vector registers: the same words as the plain one.
#ifndef GRADWIRE_ENTROPY_TANS_ENCODE_SIMD_H_
#define GRADWIRE_ENTROPY_TANS_ENCODE_SIMD_H_

#include <array>
#include <cstdint>

#include "entropy/tans_encode.h"
#include "entropy/tans_vector.h"

namespace gradwire::internal {

// Words behind the end of the stream that encode_group_simd() may overwrite.
inline constexpr std::uint32_t kEncodeSlackWords = kHalfLanes;

// The fields of TansEncodeTable, without their shift.
struct TansVectorEncodeTable {
  alignas(64) std::array<std::uint16_t, kTokenCount> delta;
  alignas(64) std::array<std::uint16_t, kTokenCount> start;
  alignas(64) std::array<std::uint16_t, kTokenCount> lane_bits;
  alignas(64) std::array<std::uint8_t, kTansStates> states;
};

struct TansVectorEncoder {
  TansVectorEncodeTable table;
  bool is_prefix_code = false;
  TansVectorLanes lanes;
};

// False where this machine, or GRADWIRE_TARGET, has no vector encoder: use the plain one.
bool has_vector_encoder() noexcept;

void start_vector_encoder(const TansEncodeTable& table, TansVectorEncoder* encoder) noexcept;

// As encode_group_ref() with 64 lanes, and may write kEncodeSlackWords words behind the end that it
// returns. `table` is the one that the encoder was started with.
std::byte* encode_group_simd(const TansEncodeTable& table, const std::uint8_t* tokens,
                             const std::uint16_t* lane_bits, std::uint32_t count,
                             TansVectorEncoder* encoder, std::byte* words) noexcept;

// The lanes as write_lane_states() wants them.
void finish_vector_encoder(const TansVectorEncoder& encoder, TansEncodeLanes* lanes) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_ENCODE_SIMD_H_
