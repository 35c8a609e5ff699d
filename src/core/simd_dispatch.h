// Calls of vector kernels: HWY_DYNAMIC_DISPATCH that knows GRADWIRE_TARGET. To be included after
// hwy/highway.h.
#ifndef GRADWIRE_CORE_SIMD_DISPATCH_H_
#define GRADWIRE_CORE_SIMD_DISPATCH_H_

#include "core/simd_target.h"

// The choice comes first, whichever kernel a process calls first.
#define GRADWIRE_DISPATCH(function) \
  (::gradwire::internal::choose_simd_target(), HWY_DYNAMIC_DISPATCH(function))

#endif  // GRADWIRE_CORE_SIMD_DISPATCH_H_
