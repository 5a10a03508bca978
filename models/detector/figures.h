// Metrics of a training step besides its losses: accuracies, recall, counts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// Numerator and denominator of a metric.
struct FigureSums {
  std::string name;
  double part = 0, whole = 0;
};

/// Adds `more` to the sums of the same name, or appends it.
void add(std::vector<FigureSums>& sums, const FigureSums& more);

/// Returns the quotients by name, without those whose denominator is 0.
std::vector<std::pair<std::string, double>> quotients(const std::vector<FigureSums>& sums);

}  // namespace millrace
