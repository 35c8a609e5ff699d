// Errors of the command line are gradwire::Error values; their code decides the exit status.
#ifndef GRADWIRE_CLI_FAILURE_H_
#define GRADWIRE_CLI_FAILURE_H_

#include <string>
#include <utility>

#include "gradwire/status.h"

namespace gradwire::cli {

// Exit status of the process.
enum Exit : int { kExitFine = 0, kExitBadData = 1, kExitBadUsage = 2 };

inline Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

// The file is damaged, foreign, missing or cannot be written.
inline Error bad_data(std::string message) {
  return make_error(ErrorCode::kBadHeader, std::move(message));
}

// The call asks for something that does not exist or does not fit the data.
inline Error bad_usage(std::string message) {
  return make_error(ErrorCode::kInvalidArgument, std::move(message));
}

// Puts the place before the message: "frame 3: ...".
inline Error at(const std::string& place, Error error) {
  error.message = place + ": " + error.message;
  return error;
}

// An error of the library, with the name of its code in the text.
inline Error named(Error error) {
  error.message = std::string(error_name(error.code)) + ": " + error.message;
  return error;
}

// An error as stderr shows it: one line, whatever file names and messages contain.
inline std::string error_line(const std::string& message) {
  std::string line = "gradwire: " + message;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return line + '\n';
}

// Codes below 20 say that the call was wrong, the others that the bytes are.
inline int exit_status(const Error& error) {
  const bool usage = static_cast<unsigned>(error.code) < 20 &&
                     error.code != ErrorCode::kOutOfMemory &&
                     error.code != ErrorCode::kBufferTooSmall;
  return usage ? kExitBadUsage : kExitBadData;
}

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_FAILURE_H_
