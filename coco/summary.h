// The last part of the evaluation: from the tables of precision and recall to figures.
#pragma once

#include <cstddef>

#include "coco/evaluate.h"
#include "coco/matching.h"

namespace millrace::coco {

inline constexpr std::size_t kRecalls = 101;  // thresholds of recall: 0, .01, ... 1
inline constexpr std::size_t kLimits = 3;  // at most 1, 10, 100 detections of an image and category

/// Where things are in the tables of an Evaluation of so many categories.
struct Layout {
  std::size_t categories;

  /// In `recall`: threshold, category, area, limit.
  std::size_t at(std::size_t t, std::size_t k, std::size_t a, std::size_t m) const {
    return ((t * categories + k) * kAreas + a) * kLimits + m;
  }
  /// In `precision` and `scores`: threshold, recall, category, area, limit.
  std::size_t at(std::size_t t, std::size_t r, std::size_t k, std::size_t a, std::size_t m) const {
    return at(t * kRecalls + r, k, a, m);
  }
};

/// Fills `stats` and `category_ap` from `precision`, `recall` and `category_ids`.
void summarize(Evaluation& evaluation);

}  // namespace millrace::coco
