// Errors of the codec layer.
#ifndef GRADWIRE_CODEC_ERRORS_H_
#define GRADWIRE_CODEC_ERRORS_H_

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

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_ERRORS_H_
