// Precision over recall as in COCO: the best precision from each of 101 recalls on.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "millrace/coco/evaluation/matching.h"
#include "millrace/coco/evaluation/summary.h"

namespace millrace::coco {

/// The fewest hits that reach each of the 101 recalls of `objects`. Recall 0 takes one.
class RecallPoints {
 public:
  /// REQUIRES: objects > 0.
  explicit RecallPoints(std::uint64_t objects) {
    const auto all = static_cast<double>(objects);
    for (std::size_t r = 0; r < kRecalls; ++r) {
      double hits = std::max(1., std::ceil(kRecallThresholds[r] * all));  // up to rounding
      while (hits > 1 && (hits - 1) / all >= kRecallThresholds[r]) --hits;
      while (hits / all < kRecallThresholds[r]) ++hits;
      needed_[r] = static_cast<std::uint64_t>(hits);
    }
  }

  std::uint64_t operator[](std::size_t r) const { return needed_[r]; }

 private:
  std::array<std::uint64_t, kRecalls> needed_;
};

/// Precision at the 101 recalls of one category and threshold, from its hits by falling score.
class PrecisionEnvelope {
 public:
  /// Adds a hit, the `hits`-th of `counted` detections. Returns the last recall reached.
  std::size_t hit(std::uint64_t hits, std::uint64_t counted, const RecallPoints& points) {
    while (reached_ + 1 < kRecalls && hits >= points[reached_ + 1]) ++reached_;
    constexpr double kSpacing = std::numeric_limits<double>::epsilon();  // numpy.spacing(1)
    const double precision = static_cast<double>(hits) / (static_cast<double>(counted) + kSpacing);
    best_[reached_] = std::max(best_[reached_], precision);
    return reached_;
  }

  /// The best precision from each recall on; 0 at recalls that no hit reaches.
  std::array<double, kRecalls> at_recalls() const {
    auto best = best_;
    for (std::size_t r = kRecalls - 1; r > 0; --r) best[r - 1] = std::max(best[r - 1], best[r]);
    return best;
  }

  /// The mean of the above.
  double average() const {
    const auto best = at_recalls();
    return std::accumulate(best.rbegin(), best.rend(), 0.0) / static_cast<double>(kRecalls);
  }

 private:
  std::size_t reached_ = 0;
  std::array<double, kRecalls> best_{};  // among the hits that reach this recall and not the next
};

}  // namespace millrace::coco
