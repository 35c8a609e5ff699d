// Runs kernels in the floating-point mode that the wire format assumes.
#ifndef GRADWIRE_BINDINGS_COMMON_FLOATING_POINT_GUARD_H_
#define GRADWIRE_BINDINGS_COMMON_FLOATING_POINT_GUARD_H_

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace gradwire::internal {

// Round to nearest even, subnormals neither flushed nor read as zero, in this thread and while
// the guard lives. Programs change both (torch.set_flush_denormal, fesetround), and encoded
// bytes must not depend on it.
class FloatingPointGuard {
 public:
  FloatingPointGuard() noexcept {
    std::fegetenv(&environment_);
    std::fesetround(FE_TONEAREST);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#elif defined(__aarch64__)
    std::uint64_t control = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control & ~kFlushToZero));
#endif
  }
  ~FloatingPointGuard() { std::fesetenv(&environment_); }
  FloatingPointGuard(const FloatingPointGuard&) = delete;
  FloatingPointGuard& operator=(const FloatingPointGuard&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kFlushToZero = 1u << 15;
  static constexpr unsigned kDenormalsAreZero = 1u << 6;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;
#endif
  std::fenv_t environment_;  // on x86 with MXCSR, on AArch64 with FPCR
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_BINDINGS_COMMON_FLOATING_POINT_GUARD_H_
