// How sure a figure is: the spread of AP over images drawn again (Efron's bootstrap).
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/coco/analysis/weighted_ap.h"

namespace millrace::coco {

/// AP of each category (K), of the images as they are and of draws of as many images with
/// replacement.
struct Resamples {
  std::vector<ApPair> whole;
  std::vector<std::vector<ApPair>> draws;
};

/// Draws n images from n so many times and scores `result` each time, by all threads of the
/// caller's arena: equal for any number of them. Draw i depends on i and n alone, so results over
/// the same images share their draws.
Resamples resample(const WeightedAp& result, std::size_t images, std::size_t draws);

/// A figure and its 95 % interval, the basic one: as far above the figure as the 2.5th percentile
/// of the draws lies below it, and the other way round. AP of fewer different objects comes out
/// higher, and a draw has fewer than the set; the percentiles themselves would add that error where
/// this takes it away (docs/analysis.md has the coverage of both). NaN where no draw says anything.
struct Interval {
  double value, low, high;
};

struct Spread {
  Interval ap, ap50;
  std::vector<Interval> category_ap;  // draws without an object of the category are left out
};

Spread spread(const Resamples& result);
/// The spread of the difference a - b, draw by draw. REQUIRES: the same images and draws.
Spread spread(const Resamples& a, const Resamples& b);

}  // namespace millrace::coco
