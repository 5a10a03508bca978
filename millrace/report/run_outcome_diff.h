// What came of two runs, compared: metrics, weights, figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/report/run_files.h"

namespace millrace::report {

/// Where the metrics of two runs part, those of time left out.
struct MetricsDiff {
  std::int64_t compared = 0;  // values that both have, over the same steps
  std::int64_t same_to = 0;   // the last step up to which all are the same
  struct Value {
    std::int64_t step = 0;
    std::string name;
    double a = 0, b = 0;  // NaN: not finite
  };
  std::optional<Value> first;  // that differs; a loss, if one does at that step
};

/// Values are compared where both are of the same steps: a loss is a mean over those since the one
/// before. Equal: to the last bit, also both not finite.
MetricsDiff metrics_diff(const MetricsLog& a, const MetricsLog& b);

/// SHA-256 of the weights of the newest checkpoint of one step that both runs have.
struct WeightsDiff {
  std::int64_t step = 0;
  std::string a, b;
};

/// Nothing: there is no such step. Throws Error for files that cannot be read.
std::optional<WeightsDiff> weights_diff(const RunFiles& a, const RunFiles& b);

/// A number of both runs; NaN: a run does not have it.
struct Figure {
  std::string name;  // "AP (bbox/AP)", "time of data (s)"
  double a = 0, b = 0;
};

/// Steps, the last loss and scores, speed, time by part, memory, energy, price.
std::vector<Figure> figures(const RunFiles& a, const RunFiles& b);

}  // namespace millrace::report
