// A run's configuration and environment as the viewer's JSON. Pure and thread-safe.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/tools/report/run_files.h"

namespace millrace::report {

/// Returns all values of a run's configuration, sorted by key: [key, value as TOML, from]. `from`
/// is a file and line, "--set" or "default"; empty if not recorded.
nlohmann::ordered_json config_json(const RunFiles& run);

/// Returns programs, machines, the command of the last start, and the duration and devices of the
/// training: [name, value].
nlohmann::ordered_json facts_json(const RunFiles& run);

/// Returns the training time multiplied by the number of devices, in hours; 0 if not recorded.
double device_hours(const RunFiles& run);

}  // namespace millrace::report
