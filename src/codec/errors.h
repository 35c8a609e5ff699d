// Errors of the codec layer.
#ifndef GRADWIRE_CODEC_ERRORS_H_
#define GRADWIRE_CODEC_ERRORS_H_

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "gradwire/status.h"

namespace gradwire::internal {

inline Error make_error(ErrorCode code, std::string_view field, std::string mine,
                        std::string message) {
  Error error;
  error.code = code;
  error.field = field;
  error.mine = std::move(mine);
  error.message = std::move(message);
  return error;
}

// The bytes of a block break the rules of its codec.
inline Error corrupt_block(std::string message) {
  return make_error(ErrorCode::kCorruptBlock, "", "", std::move(message));
}

// Runs `call`; a failed allocation becomes an error. Its text must fit std::string's own buffer,
// as nothing can be allocated now.
template <typename Call>
auto without_bad_alloc(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    Error error;
    error.code = ErrorCode::kOutOfMemory;
    error.message = "out of memory";
    return error;
  }
}

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_ERRORS_H_
