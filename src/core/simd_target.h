// Which instruction set the vector kernels use. The best that this machine has, unless the
// environment variable GRADWIRE_TARGET names a lesser one: `avx512`, `avx2`, `portable`, ...
#ifndef GRADWIRE_CORE_SIMD_TARGET_H_
#define GRADWIRE_CORE_SIMD_TARGET_H_

#include <string_view>
#include <vector>

namespace gradwire::internal {

// Reads GRADWIRE_TARGET at its first call; to be called before a kernel is dispatched. A name that
// is unknown or not to be had here is ignored.
void choose_simd_target() noexcept;

// Name of the target in use: "avx512_vbmi2", "avx512", "avx2", "neon", "portable", ...
std::string_view simd_target_name() noexcept;

// For tests: names of the targets that this machine has and GRADWIRE_TARGET leaves, best first.
std::vector<std::string_view> simd_targets();
// For tests: the kernels of this target from now on, in all threads; one of simd_targets().
void use_simd_target(std::string_view name) noexcept;

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_SIMD_TARGET_H_
