// COCO's interpolated precision: the best precision at or above each recall threshold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

/// The sorted unique recall thresholds. The first is 0 and stands for all thresholds <= 0.
class Recalls {
 public:
  explicit Recalls(std::span<const double> given = kRecallThresholds) : values_{0} {
    for (const double recall : given)
      if (recall > 0) values_.push_back(recall);
    std::ranges::sort(values_);
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
    for (const double recall : given) {
      const auto at = std::ranges::lower_bound(values_, recall);
      positions_.push_back(static_cast<std::size_t>(at - values_.begin()));
    }
  }

  std::span<const double> values() const { return values_; }
  std::size_t size() const { return values_.size(); }
  /// Returns the position of the r-th given threshold.
  std::size_t position(std::size_t r) const { return positions_[r]; }

 private:
  std::vector<double> values_;
  std::vector<std::size_t> positions_;
};

/// The minimum number of hits that reaches each recall threshold for `objects` objects. Recall 0
/// needs one hit.
class RecallPoints {
 public:
  /// REQUIRES: objects > 0.
  RecallPoints(std::uint64_t objects, const Recalls& recalls) {
    constexpr double kExact = 9e15;  // integers up to this are exact in double
    const auto all = static_cast<double>(objects);
    for (const double recall : recalls.values()) {
      // May be wrong by rounding; corrected below.
      double hits = std::max(1., std::ceil(recall * all));
      if (hits > kExact) {
        needed_.push_back(std::numeric_limits<std::uint64_t>::max());
        continue;
      }
      while (hits > 1 && (hits - 1) / all >= recall) --hits;
      while (hits / all < recall) ++hits;
      needed_.push_back(static_cast<std::uint64_t>(hits));
    }
  }

  std::size_t size() const { return needed_.size(); }
  std::uint64_t operator[](std::size_t r) const { return needed_[r]; }

 private:
  std::vector<std::uint64_t> needed_;
};

/// Interpolated precision of one category and threshold, computed from its hits by falling score.
class PrecisionEnvelope {
 public:
  /// Writes to `best`, which must be zero, one value per recall threshold: the best precision among
  /// the hits that reach this threshold but not the next.
  explicit PrecisionEnvelope(std::span<double> best) : best_(best) {}

  /// Adds a hit: the `hits`-th one, among the first `counted` detections. Returns the position of
  /// the last recall threshold reached.
  std::size_t hit(std::uint64_t hits, std::uint64_t counted, const RecallPoints& points) {
    while (reached_ + 1 < points.size() && hits >= points[reached_ + 1]) ++reached_;
    constexpr double kSpacing = std::numeric_limits<double>::epsilon();  // numpy.spacing(1)
    const double precision = static_cast<double>(hits) / (static_cast<double>(counted) + kSpacing);
    best_[reached_] = std::max(best_[reached_], precision);
    return reached_;
  }

  /// Completes the envelope: `best` then contains the best precision at or above each recall
  /// threshold, 0 at thresholds that no hit reaches.
  void finish() {
    for (std::size_t r = best_.size() - 1; r > 0; --r)
      best_[r - 1] = std::max(best_[r - 1], best_[r]);
  }

  /// Completes the envelope and returns its mean, summed from the last recall threshold on.
  double average() {
    finish();
    return std::accumulate(best_.rbegin(), best_.rend(), 0.0) / static_cast<double>(best_.size());
  }

 private:
  std::size_t reached_ = 0;
  std::span<double> best_;
};

}  // namespace millrace::coco
