// The decoder of 64 lanes in vector registers: the same values and verdicts as the plain one.
#ifndef GRADWIRE_ENTROPY_TANS_DECODE_SIMD_H_
#define GRADWIRE_ENTROPY_TANS_DECODE_SIMD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "entropy/tans_decode.h"
#include "entropy/tans_vector.h"

namespace gradwire::internal {

// By state: token | code bits << 5, and the next state without the code bits. By token: number and
// mask of its lane bits.
struct TansVectorDecodeTable {
  alignas(64) std::array<std::uint8_t, kTansStates> symbols;
  alignas(64) std::array<std::uint8_t, kTansStates> next;
  alignas(64) std::array<std::uint16_t, kTokenCount> lane_bits;
  alignas(64) std::array<std::uint16_t, kTokenCount> masks;
};

struct TansVectorDecoder {
  TansVectorDecodeTable table;
  TansVectorLanes lanes;
  // Bytes from the start of the words on that may be read, words or not.
  const std::byte* readable_end = nullptr;
};

// False where this machine, or GRADWIRE_TARGET, has no vector decoder: use the plain one.
bool has_vector_decoder() noexcept;

// `decoder` has just been started with 64 lanes; its lanes are taken over, its words and flags go
// on being used.
void start_vector_decoder(const TansDecodeTable& table, const TansDecoder& decoder,
                          const std::byte* readable_end, TansVectorDecoder* vector) noexcept;

// As decode_group_ref(). `table` is the one that the decoder was started with.
void decode_group_simd(const TansDecodeTable& table, TansDecoder* decoder,
                       TansVectorDecoder* vector, std::uint8_t* tokens, std::uint16_t* lane_bits,
                       std::uint32_t count) noexcept;

// Gives the lanes back, for finish_decoder().
void finish_vector_decoder(const TansVectorDecoder& vector, TansDecoder* decoder) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_ENTROPY_TANS_DECODE_SIMD_H_
