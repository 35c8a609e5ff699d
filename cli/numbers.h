// Numbers with units in the options of the command line.
#ifndef GRADWIRE_CLI_NUMBERS_H_
#define GRADWIRE_CLI_NUMBERS_H_

#include <cstdint>
#include <string>

#include "gradwire/status.h"

namespace gradwire::cli {

// "100M", "1.5G" or plain bytes, up to 64 GiB; k, M, G are powers of 1000. Errors name `option`.
Result<std::uint64_t> parse_size(const std::string& option, const std::string& text);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_NUMBERS_H_
