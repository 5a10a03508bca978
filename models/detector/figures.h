// What a detector reports of a training step besides its losses: accuracies, recall, counts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// Both halves of a quotient.
struct FigureSums {
  std::string name;
  double part = 0, whole = 0;
};

/// Adds to the sums of that name, or appends them.
void add(std::vector<FigureSums>& sums, const FigureSums& more);

/// By name, without those of an empty whole.
std::vector<std::pair<std::string, double>> quotients(const std::vector<FigureSums>& sums);

}  // namespace millrace
