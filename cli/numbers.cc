#include "numbers.h"

#include <charconv>

#include "failure.h"

namespace gradwire::cli {

Result<std::uint64_t> parse_size(const std::string& option, const std::string& text) {
  constexpr double kMost = 0x1p36;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string suffix(rest, end);
  const double unit = suffix.empty()                   ? 1
                      : suffix == "k" || suffix == "K" ? 1e3
                      : suffix == "M"                  ? 1e6
                      : suffix == "G"                  ? 1e9
                                                       : 0;
  if (error != std::errc() || unit == 0 || !(number >= 0) || number * unit > kMost) {
    return bad_usage(option + " " + text + ": a number, or one with k, M or G, up to 64G");
  }
  return static_cast<std::uint64_t>(number * unit);
}

}  // namespace gradwire::cli
