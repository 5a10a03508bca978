// A run's folder as the viewer's JSON (tools/report/README.md). Pure and thread-safe.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "millrace/tools/report/run_files.h"

namespace millrace::report {

/// Returns the state of a run, its metrics by step, configuration and machines, without scores.
/// Longer metrics are reduced to about `most_points` values, including the extremes of each part.
nlohmann::ordered_json run_view(const RunFiles& run, std::size_t most_points);

}  // namespace millrace::report
