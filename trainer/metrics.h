// Metrics and pictures that a training produces, which callbacks publish and read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// Metrics by name.
using Scalars = std::vector<std::pair<std::string, double>>;

/// How a metric is summarized over several steps: mean for losses, norms and shares; last value for
/// rates, hyper-parameters and counts since the start of the training.
enum class MetricKind { mean, last };

/// A metric of one step.
struct StepMetric {
  std::string name;
  double value = 0;
  MetricKind kind = MetricKind::mean;
  friend bool operator==(const StepMetric&, const StepMetric&) = default;
};
using StepMetrics = std::vector<StepMetric>;

/// Point in the training that metrics describe.
struct Moment {
  std::int64_t step = 0;
  double progress = 0;  // epochs done
};

/// A picture that a callback has drawn.
struct Picture {
  std::string name;            // name, the same for the same subject at every step
  std::filesystem::path file;  // path of the JPEG file
};

}  // namespace millrace
