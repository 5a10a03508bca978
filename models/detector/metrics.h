// Metrics of a training step besides its losses: accuracies, recall, counts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// Numerator and denominator of a metric.
struct MetricSums {
  std::string name;
  double part = 0, whole = 0;
};

/// Adds `more` to the sums of the same name, or appends it.
void add(std::vector<MetricSums>& sums, const MetricSums& more);

/// Returns the quotients by name, without those whose denominator is 0.
std::vector<std::pair<std::string, double>> metric_values(const std::vector<MetricSums>& sums);

}  // namespace millrace
