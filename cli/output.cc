#include "output.h"

#include <algorithm>
#include <cstdio>

namespace gradwire::cli {
namespace {

std::string print_to_string(const char* format, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, digits, value);
  return text;
}

}  // namespace

void print_results(const OrderedJson& results) {
  const OrderedJson object = {{"results", results}};
  // File names need not be UTF-8.
  const std::string text = object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

void Table::print(std::size_t left) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += i < left ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

std::string fixed(std::optional<double> value, int digits) {
  return value ? print_to_string("%.*f", digits, *value) : "-";
}

std::string scientific(std::optional<double> value, int digits) {
  return value ? print_to_string("%.*e", digits, *value) : "-";
}

}  // namespace gradwire::cli
