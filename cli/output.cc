#include "output.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gradwire::cli {
namespace {

std::string print_to_string(const char* format, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, digits, value);
  return text;
}

// Columns of a terminal, as far as one per code point is right.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127) c = '?';
  }
  return text;
}

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
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i < left ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", printable(std::move(line)).c_str());
  }
}

std::string fixed(std::optional<double> value, int digits) {
  return value ? print_to_string("%.*f", digits, *value) : "-";
}

std::string scientific(std::optional<double> value, int digits) {
  return value ? print_to_string("%.*e", digits, *value) : "-";
}

}  // namespace gradwire::cli
