// What the verbs print on stdout: one JSON object, or tables with aligned columns.
#ifndef GRADWIRE_CLI_OUTPUT_H_
#define GRADWIRE_CLI_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gradwire::cli {

// Keys keep the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

// {"results": results} on one line.
void print_results(const OrderedJson& results);

// Rows of cells under a heading; columns of numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // `left`: this many first columns are aligned to the left, the others to the right.
  void print(std::size_t left) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Names come from files: what would steer the terminal becomes "?".
std::string printable(std::string text);

// printf with %.*f and %.*e, "-" for nothing.
std::string fixed(std::optional<double> value, int digits);
std::string scientific(std::optional<double> value, int digits);

}  // namespace gradwire::cli

#endif  // GRADWIRE_CLI_OUTPUT_H_
