// Early return of errors.
#ifndef GRADWIRE_CORE_STATUS_MACROS_H_
#define GRADWIRE_CORE_STATUS_MACROS_H_

#include <utility>

#include "gradwire/status.h"

// Returns the error of `expression` (a Status or Result) from the function around it, if any.
#define GRADWIRE_RETURN_IF_ERROR(expression)                          \
  do {                                                                \
    if (auto gradwire_status = (expression); !gradwire_status.ok()) { \
      return gradwire_status.error();                                 \
    }                                                                 \
  } while (false)

#define GRADWIRE_CONCAT_INNER(a, b) a##b
#define GRADWIRE_CONCAT(a, b) GRADWIRE_CONCAT_INNER(a, b)

// `GRADWIRE_ASSIGN_OR_RETURN(auto x, f());` declares x with the value of f(), or returns its error.
#define GRADWIRE_ASSIGN_OR_RETURN(declaration, expression)                                  \
  GRADWIRE_ASSIGN_OR_RETURN_INNER(GRADWIRE_CONCAT(gradwire_result_, __LINE__), declaration, \
                                  expression)
#define GRADWIRE_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                            \
  if (!result.ok()) return result.error();                               \
  declaration = std::move(result).value()

#endif  // GRADWIRE_CORE_STATUS_MACROS_H_
