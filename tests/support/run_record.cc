#include "support/run_record.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gradwire::test {

bool append_record(const std::string& file, const RunRecord& record) {
  if (file.empty()) return true;
  const nlohmann::ordered_json line = {
      {"kind", record.kind},       {"promise", record.promise},
      {"name", record.name},       {"count", record.count},
      {"planned", record.planned}, {"unit", record.unit},
      {"seed", record.seed},       {"seconds", std::round(record.seconds * 100) / 100},
      {"target", record.target},   {"result", record.finding.empty() ? "pass" : "fail"},
      {"finding", record.finding}};
  std::ofstream out(file, std::ios::app);
  out << line.dump() << '\n';
  return out.good();
}

}  // namespace gradwire::test
