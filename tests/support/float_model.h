// Floating types by their definition, for models: slow, and without the library's code.
#ifndef GRADWIRE_TESTS_SUPPORT_FLOAT_MODEL_H_
#define GRADWIRE_TESTS_SUPPORT_FLOAT_MODEL_H_

#include <cstddef>
#include <cstdint>

#include "gradwire/tensor_view.h"

namespace gradwire::testing {

// Value `index` of `values`, exactly.
double read_value(DType dtype, const std::byte* values, std::size_t index);
// Stores `value` rounded to nearest even; NaN as the quiet NaN without sign and payload.
void write_value(DType dtype, std::byte* values, std::size_t index, double value);

}  // namespace gradwire::testing

#endif  // GRADWIRE_TESTS_SUPPORT_FLOAT_MODEL_H_
