// The error bounds that codecs state, checked in double precision.
#ifndef GRADWIRE_TESTS_SUPPORT_BOUNDS_H_
#define GRADWIRE_TESTS_SUPPORT_BOUNDS_H_

#include <string>

#include "gradwire/codec.h"
#include "support/tensor.h"

namespace gradwire::test {

// What is wrong with `decoded` as a parameter that was `given`; empty if every value obeys the
// codec's bound and non-finite values kept their class. `offset`: of the parameter's first value
// in its frame, since block borders cut groups.
std::string bound_violation(const CodecSpec& spec, const Tensor& given, const Tensor& decoded,
                            std::uint64_t offset);

}  // namespace gradwire::test

#endif  // GRADWIRE_TESTS_SUPPORT_BOUNDS_H_
