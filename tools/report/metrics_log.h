// Reads metrics.jsonl of a run, even while it is being written. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::report {

struct MetricValue {
  std::int64_t step = 0;
  double epoch = 0;
  double time = 0;   // seconds since 1970; 0 if not recorded
  double value = 0;  // NaN = not finite
};

struct MetricsLog {
  std::map<std::string, std::vector<MetricValue>> by_name;  // ascending by step
  bool is_cut = false;                                      // true if the last line is incomplete
  std::vector<std::size_t> broken_lines;  // numbers, from 1, of other invalid lines
  std::int64_t last_step = 0;
  double last_epoch = 0, first_time = 0, last_time = 0;

  /// Returns the values of a metric; empty if it was never logged.
  const std::vector<MetricValue>& of(const std::string& name) const;
  bool has(const std::string& name) const { return !of(name).empty(); }
};

/// Reads a JSON object per line. Invalid lines are recorded instead of throwing.
MetricsLog read_metrics(std::string_view text);

}  // namespace millrace::report
