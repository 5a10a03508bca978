// What runs were configured with and ran on. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/report/run_files.h"

namespace millrace::report {

struct ConfigValue {
  std::string key, value;  // the value as TOML
  std::string from;        // a file and line, "--set", "default"; empty: not recorded
};

/// Every value of a run's configuration, by key.
std::vector<ConfigValue> config_values(const RunFiles& run);

/// Programs, machines, the command of the last start, and how long and on how many devices the run
/// trained: names and values.
std::vector<std::pair<std::string, std::string>> run_facts(const RunFiles& run);

/// Time of training times devices, in hours; 0 if record.json does not say.
double device_hours(const RunFiles& run);

}  // namespace millrace::report
