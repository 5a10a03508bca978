// How sure AP is, and whether two results differ: resampling over images.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/analysis/weighted_ap.h"

namespace millrace::coco {

/// AP of each category (K), of all images and of bootstrap draws: as many with replacement (Efron).
struct Resamples {
  std::vector<ApPair> whole;
  std::vector<std::vector<ApPair>> draws;
};

/// Draws n images from n `draws` times and scores each draw, by all threads of the caller's arena.
/// Draw i depends on i and n alone, so results over the same images share their draws. With `among`
/// positions of images, draws from these as many as they are; `whole` is theirs.
Resamples resample(const WeightedAp& result, std::size_t images, std::size_t draws,
                   std::span<const std::uint32_t> among = {});

/// A figure and its basic 95 % interval: as far above the figure as the 2.5th percentile of the
/// draws lies below it, and the other way round. AP of fewer different objects is higher, and a
/// draw has fewer than the set: percentiles would add that bias, this removes it (docs/analysis.md
/// has the coverage of both). NaN if no draw has anything to find.
struct Interval {
  double value, low, high;
};

/// That of a figure from its draws.
Interval basic_interval(double value, std::vector<double> draws);

struct Spread {
  Interval ap, ap50;
  std::vector<Interval> category_ap;  // draws without an object of the category are left out
  std::vector<double> ap_draws = {};  // of one result: AP of each draw, -1 if it has no object
};

Spread spread(const Resamples& result);
/// The spread of the difference a - b, draw by draw. REQUIRES: the same images and draws.
Spread spread(const Resamples& a, const Resamples& b);

/// Two results over the same images.
struct Comparison {
  ApPair a, b;
  Spread difference;  // a - b: the same draws for both
  /// Two-sided paired permutation test over images: how often AP differs at least as much if a coin
  /// gives each image to either side. The observed split counts as one, so it is never 0.
  double p = 1;
  /// The same for each category (K); 1 where there is nothing to find.
  std::vector<double> category_p;

  bool significant() const { return p < .05; }
};

/// Draws and permutes as often as `draws_of_a`, by all threads of the caller's arena. REQUIRES:
/// `draws_of_a` is `resample` of a alone.
Comparison compare(const Plan& plan, const Matches& a, const Resamples& draws_of_a,
                   const Matches& b);

/// Positions of up to `most` categories whose AP differs, the largest absolute difference first.
std::vector<std::size_t> most_different(const Comparison& comparison, std::size_t most);

/// "+0.21 AP (42.31 against 42.10), 95 % interval -0.05 .. +0.47, p = 0.13: within noise"
std::string sentence(const Comparison& comparison);

}  // namespace millrace::coco
