// Confidence intervals of AP and significance tests between two results, by resampling images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/analysis/weighted_ap.h"

namespace millrace::coco {

/// AP of each category [K] over all images, and over bootstrap samples of the same size drawn with
/// replacement (Efron).
struct Resamples {
  std::vector<ApPair> whole;
  std::vector<std::vector<ApPair>> draws;
};

/// Draws `images` images with replacement, `draws` times, and scores each draw, on all threads of
/// the caller's arena. Draw i depends only on i and the number of images, so results over the same
/// images share their draws. With `among` (positions of images), draws only from these, and `whole`
/// covers these.
Resamples resample(const WeightedAp& result, std::size_t images, std::size_t draws,
                   std::span<const std::uint32_t> among = {});

/// A metric with its basic 95 % bootstrap interval: the distance from the value to the upper limit
/// equals that from the 2.5th percentile of the draws to the value, and vice versa. A draw has
/// fewer distinct objects than the data set, and AP of fewer distinct objects is higher. A
/// percentile interval would add that bias; the basic interval removes it (docs/evaluation.md has
/// the coverage of both). NaN if no draw has objects.
struct Interval {
  double value, low, high;
};

/// Returns the basic interval of a metric from its draws.
Interval basic_interval(double value, std::vector<double> draws);

struct Spread {
  Interval ap, ap50;
  std::vector<Interval> category_ap;  // excludes draws without an object of the category
  // AP of each draw, for a single result; -1 if the draw has no objects.
  std::vector<double> ap_draws = {};
};

Spread spread(const Resamples& result);
/// Returns the intervals of the difference a - b, paired draw by draw. REQUIRES: the same images
/// and draws.
Spread spread(const Resamples& a, const Resamples& b);

/// A comparison of two results over the same images.
struct Comparison {
  ApPair a, b;
  Spread difference;  // a - b over the same draws
  /// p-value of a two-sided paired permutation test over images: the share of permutations with an
  /// AP difference at least as large, where each permutation randomly swaps the two results per
  /// image. The observed assignment counts as one permutation, so p is never 0.
  double p = 1;
  /// The p-value of each category, [K]; 1 if it has no objects.
  std::vector<double> category_p;

  bool significant() const { return p < .05; }
};

/// Compares results a and b, with the number of draws and permutations of `draws_of_a`, on all
/// threads of the caller's arena. REQUIRES: `draws_of_a` is the result of `resample` for a alone.
Comparison compare(const Plan& plan, const Matches& a, const Resamples& draws_of_a,
                   const Matches& b);

/// Returns the positions of up to `most` categories whose AP differs, by decreasing absolute
/// difference.
std::vector<std::size_t> most_different(const Comparison& comparison, std::size_t most);

/// Returns "+0.21 AP (42.31 against 42.10), 95 % interval -0.05 .. +0.47, p = 0.13: within noise".
std::string sentence(const Comparison& comparison);

/// Returns AP over all thresholds of the evaluator's images with its basic 95 % bootstrap interval
/// from `draws` resamples, computed on all threads of the caller's arena. Categories without
/// objects so far do not count. The value is -1 and the interval NaN if there are no objects yet.
Interval ap_so_far(const Evaluator& evaluator, std::size_t draws);

/// Returns "0.412 (0.394 .. 0.430)", or "-" if there are no objects.
std::string ap_text(const Interval& ap);

}  // namespace millrace::coco
