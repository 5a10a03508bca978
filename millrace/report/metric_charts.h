// Charts of the metrics of runs over their steps. HTML. Pure; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/page/charts.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// Names of metrics that any run has and `wanted` takes, sorted.
std::vector<std::string> metric_names(std::span<const RunFiles> runs,
                                      const std::function<bool(const std::string&)>& wanted);

/// Of one run a chart with a line for each metric; of several a chart for each metric with a line
/// for each run. `like`: all but the lines, and of several runs but the title. Empty if no run has
/// any of `metrics`.
std::string metric_charts(std::span<const RunFiles> runs, const std::vector<std::string>& metrics,
                          const page::LineChart& like);

/// Charts beside each other where there is room.
std::string side_by_side(const std::string& charts);

/// The same; folded where several runs have a chart for each metric.
std::string folded(std::span<const RunFiles> runs, std::string_view what,
                   const std::string& charts);

/// The name of a run above what is of this run alone; empty where there is one run.
std::string run_heading(std::span<const RunFiles> runs, const RunFiles& run);

/// A share in per cent, a dash where there is none: -1 or NaN.
std::string percent_or_dash(double share);

}  // namespace millrace::report
