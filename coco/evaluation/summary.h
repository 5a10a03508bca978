// The second half of the evaluation: tables of precision and recall, and metrics, from matches.
#pragma once

#include <cstddef>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Offsets in the tables of an Evaluation.
struct Layout {
  std::size_t recalls, categories, areas, limits;

  /// Returns the offset in `recall`, for threshold, category, area and limit.
  std::size_t at(std::size_t t, std::size_t k, std::size_t a, std::size_t m) const {
    return ((t * categories + k) * areas + a) * limits + m;
  }
  /// Returns the offset in `precision` and `scores`, for threshold, recall, category, area and
  /// limit.
  std::size_t at(std::size_t t, std::size_t r, std::size_t k, std::size_t a, std::size_t m) const {
    return at(t * recalls + r, k, a, m);
  }
};

Layout layout_of(const Evaluation& evaluation);

/// Computes tables and metrics from matches, in the calling thread's arena. Bitwise equal for any
/// number of threads.
Evaluation accumulate(const Plan& plan, const Matches& matches);

/// Returns the metrics of one category.
std::vector<double> category_stats(const Evaluation& evaluation, std::size_t category);

/// Fills `stats`, `stat_names` and `category_ap` from `precision` and `recall`.
void summarize(Evaluation& evaluation);

}  // namespace millrace::coco
