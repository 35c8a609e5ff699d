#include "core/simd_target.h"

#include <array>
#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"
#include "hwy/targets.h"

namespace gradwire::internal {
namespace {

struct NamedTarget {
  std::string_view name;
  std::int64_t bit;
};

// Lower bits are better targets (hwy/detect_targets.h).
constexpr std::array kTargets = {
#if HWY_ARCH_X86
    NamedTarget{"avx512_vbmi2", HWY_AVX3_DL},
    NamedTarget{"avx512", HWY_AVX3},
    NamedTarget{"avx2", HWY_AVX2},
#elif HWY_ARCH_ARM
    NamedTarget{"neon", HWY_NEON},
#endif
    NamedTarget{"portable", HWY_SCALAR},
};

// Leaves the named target and those below it.
bool force_target() noexcept {
  const char* wanted = std::getenv("GRADWIRE_TARGET");
  if (wanted == nullptr) return false;
  for (const NamedTarget& target : kTargets) {
    if (target.name != wanted) continue;
    hwy::DisableTargets(target.bit - 1);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
  }
  return false;
}

}  // namespace

void choose_simd_target() noexcept {
  static const bool forced = force_target();
  static_cast<void>(forced);
}

std::string_view simd_target_name() noexcept {
  choose_simd_target();
  const std::int64_t best = hwy::SupportedTargets() & HWY_TARGETS;
  for (const NamedTarget& target : kTargets) {
    if ((best & target.bit) != 0) return target.name;
  }
  return "portable";
}

std::vector<std::string_view> simd_targets() {
  choose_simd_target();
  const std::int64_t here = hwy::SupportedTargets() & HWY_TARGETS;
  std::vector<std::string_view> names;
  for (const NamedTarget& target : kTargets) {
    if ((here & target.bit) != 0 || target.bit == HWY_SCALAR) names.push_back(target.name);
  }
  return names;
}

void use_simd_target(std::string_view name) noexcept {
  for (const NamedTarget& target : kTargets) {
    if (target.name == name) hwy::GetChosenTarget().Update(target.bit);
  }
}

}  // namespace gradwire::internal
