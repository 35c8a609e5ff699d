// Floating-point environment of kernels: round to nearest, subnormals neither flushed nor read
// as zero, no traps. The caller's environment is put back on leaving, so that for example
// torch.set_flush_denormal(True) cannot change a byte on the wire, and a program that hunts its
// NaNs with feenableexcept() is not killed by those that the kernels take in their stride.
#ifndef GRADWIRE_CORE_FP_ENVIRONMENT_H_
#define GRADWIRE_CORE_FP_ENVIRONMENT_H_

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "Gradwire knows the floating-point control register of x86-64 and AArch64 only"
#endif

namespace gradwire::internal {

class FpEnvironment {
 public:
  FpEnvironment() noexcept : saved_(read()) {
    if (wanted(saved_) != saved_) write(wanted(saved_));
  }
  ~FpEnvironment() {
    if (wanted(saved_) != saved_) write(saved_);
  }
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;

 private:
#if defined(__aarch64__)
  using Register = std::uint64_t;
  // FPCR: FZ16 (bit 19), RMode (22, 23), FZ (24), DN (25: NaN payloads kept), traps (8 to 12, 15).
  static constexpr Register wanted(Register value) noexcept {
    return value & ~Register{0x3C89F00u};
  }
  static Register read() noexcept {
    Register value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value) : : "memory");
    return value;
  }
  static void write(Register value) noexcept {
    __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory");
  }
#else
  using Register = std::uint32_t;
  // MXCSR: DAZ (bit 6), rounding control (13, 14), FTZ (15); exceptions masked (7 to 12).
  static constexpr Register wanted(Register value) noexcept {
    return (value & ~Register{0xE040u}) | Register{0x1F80u};
  }
  static Register read() noexcept { return _mm_getcsr(); }
  static void write(Register value) noexcept { _mm_setcsr(value); }
#endif

  const Register saved_;
};

}  // namespace gradwire::internal

#endif  // GRADWIRE_CORE_FP_ENVIRONMENT_H_
