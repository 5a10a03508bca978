// All that is known beyond the twelve figures: what tables, JSON, CSV and the page are made from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/analysis/bootstrap.h"
#include "millrace/coco/analysis/confusion.h"
#include "millrace/coco/analysis/error_kinds.h"

namespace millrace::coco {

/// One category; if categories are joined, one of id -1 named "all".
struct CategoryReport {
  std::int64_t id = 0;
  std::string name;
  std::int64_t objects = 0;     // that count
  std::int64_t detections = 0;  // likewise
  std::vector<double> stats;    // as Evaluation::stats, of this category alone
  /// (T = 10, R = 101) precision at the recalls, all areas; -1 if there is nothing to find.
  std::vector<double> precision;
};

/// All but `evaluation` takes its largest limit of detections.
struct Analysis {
  Evaluation evaluation;
  std::int64_t images = 0;
  std::vector<CategoryReport> categories;  // (K) by id
  std::vector<double> precision;  // as of a category: the mean over those that say something
  ErrorReport errors;
  Verdicts verdicts;
  OperatingPoints operating;
  ConfusionMatrix confusion;  // at the best operating point
  std::optional<Spread> spread;
  std::size_t draws = 0;  // number of resamples that `spread` is from
  std::optional<Comparison> versus;
};

/// Positions of the categories that have something to find, the least AP first.
std::vector<std::size_t> weakest_first(const Analysis& analysis);

/// Matches and scores once, and analyzes the outcome. With `draws` > 0 also the bootstrap, and with
/// `versus` the comparison with other results, by as many draws. REQUIRES: draws > 0 with `versus`.
Analysis analyze(const Dataset& truth, const Detections& detections, const EvaluateOptions& options,
                 std::size_t draws = 0, const Detections* versus = nullptr);

}  // namespace millrace::coco
