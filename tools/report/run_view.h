// A run's folder as the viewer's JSON (tools/report/README.md). Pure; any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "millrace/tools/report/run_files.h"

namespace millrace::report {

/// The state of a run, its metrics over steps, configuration and machines: all but its scores. A
/// longer metric has about `most_points` of its values, the extremes of each part among them.
nlohmann::ordered_json run_view(const RunFiles& run, std::size_t most_points);

}  // namespace millrace::report
