// The second half of the evaluation: from matches to tables of precision and recall, and figures.
#pragma once

#include <cstddef>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

inline constexpr std::size_t kRecalls = 101;  // thresholds of recall: 0, .01, ... 1
inline constexpr auto kRecallThresholds = linspace<kRecalls>(0, 1);

/// Positions in the tables of an Evaluation.
struct Layout {
  explicit Layout(const Evaluation& e)
      : categories(e.category_ids.size()), limits(e.max_detections.size()) {}

  std::size_t categories, limits;

  /// In `recall`: threshold, category, area, limit.
  std::size_t at(std::size_t t, std::size_t k, std::size_t a, std::size_t m) const {
    return ((t * categories + k) * kAreas + a) * limits + m;
  }
  /// In `precision` and `scores`: threshold, recall, category, area, limit.
  std::size_t at(std::size_t t, std::size_t r, std::size_t k, std::size_t a, std::size_t m) const {
    return at(t * kRecalls + r, k, a, m);
  }
};

/// Tables and figures, by the calling thread's arena. The same bits for any number of threads.
Evaluation accumulate(const Dataset& truth, const Matches& matches, const EvaluateOptions& options);

/// The twelve figures of one category alone.
std::array<double, 12> category_stats(const Evaluation& evaluation, std::size_t category);

/// Fills `stats` and `category_ap` from `precision` and `recall`.
void summarize(Evaluation& evaluation);

}  // namespace millrace::coco
