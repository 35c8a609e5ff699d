// Which instruction set the vector kernels use. The best that this machine has, unless the
// environment variable GRADWIRE_TARGET names a lesser one: `avx512`, `avx2`, `portable`, ...
#ifndef GRADWIRE_CORE_SIMD_TARGET_H_
#define GRADWIRE_CORE_SIMD_TARGET_H_

#include <string_view>

namespace gradwire::internal {

// Reads GRADWIRE_TARGET at its first call; to be called before a kernel is dispatched. A name that
// is unknown or not to be had here is ignored.
void choose_simd_target() noexcept;

// Name of the target in use: "avx512_vbmi2", "avx512", "avx2", "neon", "portable", ...
std::string_view simd_target_name() noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_SIMD_TARGET_H_
