// The second half of the evaluation: from matches to tables of precision and recall, and figures.
#pragma once

#include <cstddef>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Positions in the tables of an Evaluation.
struct Layout {
  std::size_t recalls, categories, areas, limits;

  /// In `recall`: threshold, category, area, limit.
  std::size_t at(std::size_t t, std::size_t k, std::size_t a, std::size_t m) const {
    return ((t * categories + k) * areas + a) * limits + m;
  }
  /// In `precision` and `scores`: threshold, recall, category, area, limit.
  std::size_t at(std::size_t t, std::size_t r, std::size_t k, std::size_t a, std::size_t m) const {
    return at(t * recalls + r, k, a, m);
  }
};

Layout layout_of(const Evaluation& evaluation);

/// Tables and figures of matches, by the calling thread's arena. The same bits for any number of
/// threads.
Evaluation accumulate(const Plan& plan, const Matches& matches);

/// The twelve figures of one category alone.
std::vector<double> category_stats(const Evaluation& evaluation, std::size_t category);

/// Fills `stats`, `stat_names` and `category_ap` from `precision` and `recall`.
void summarize(Evaluation& evaluation);

}  // namespace millrace::coco
