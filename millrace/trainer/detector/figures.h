// What a detector says of a training step besides its losses: accuracies, recall, counts.
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

/// Adds to the sums of that name, behind all others where there are none.
void add(std::vector<FigureSums>& sums, const FigureSums& more);

/// By name; what is a share of nothing is left out.
std::vector<std::pair<std::string, double>> quotients(const std::vector<FigureSums>& sums);

}  // namespace millrace
