// What runs were configured with and ran on, as the viewer's JSON. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/tools/report/run_files.h"

namespace millrace::report {

/// Every value of a run's configuration, by key: [key, value as TOML, from]. `from` is a file and
/// line, "--set" or "default"; empty if not recorded.
nlohmann::ordered_json config_json(const RunFiles& run);

/// Programs, machines, the command of the last start, and how long and on how many devices the run
/// trained: [name, value].
nlohmann::ordered_json facts_json(const RunFiles& run);

/// Time of training times devices, in hours; 0 if not recorded.
double device_hours(const RunFiles& run);

}  // namespace millrace::report
