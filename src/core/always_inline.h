// For loops that are compiled once for each vector target: a function that is inlined always takes
// the instruction set of its caller, and compilers make vectors of its plain loop.
#ifndef GRADWIRE_CORE_ALWAYS_INLINE_H_
#define GRADWIRE_CORE_ALWAYS_INLINE_H_

#define GRADWIRE_ALWAYS_INLINE [[gnu::always_inline]] inline

#endif  // GRADWIRE_CORE_ALWAYS_INLINE_H_
