// Are two results different, or is it noise?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/coco/analysis/bootstrap.h"

namespace millrace::coco {

/// Two results over the same images.
struct Comparison {
  ApPair a, b;
  Spread difference;  // a - b: the same draws for both
  /// The paired permutation test over images: how often AP differs at least as much where each
  /// image is given to either side by the toss of a coin, two-sided. The observed split counts as
  /// one, so it is never 0.
  double p = 1;
  /// The same for each category (K); 1 where there is nothing to find.
  std::vector<double> category_p;
  std::size_t draws = 0;

  /// p < .05.
  bool significant() const { return p < .05; }
};

/// Draws and permutes as often as `draws_of_a` was drawn, by all threads of the caller's arena:
/// equal for any number of them. REQUIRES: `draws_of_a` is `resample` of a alone.
Comparison compare(const Dataset& truth, const Matches& a, const Resamples& draws_of_a,
                   const Matches& b, bool class_agnostic);

/// Positions of the categories whose AP differs, at most so many, the largest difference of either
/// sign first.
std::vector<std::size_t> most_different(const Comparison& comparison, std::size_t most);

/// "+0.21 AP (42.31 against 42.10), 95 % interval -0.05 .. +0.47, p = 0.13: within noise"
std::string sentence(const Comparison& comparison);

}  // namespace millrace::coco
