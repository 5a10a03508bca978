// A detailed analysis of detections beyond the twelve COCO metrics, as the source of tables, JSON,
// CSV and pages.
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

/// The report of one category; with joined categories, of all together (id -1, name "all").
struct CategoryReport {
  std::int64_t id = 0;
  std::string name;
  std::int64_t objects = 0;     // objects that count
  std::int64_t detections = 0;  // detections that count
  std::vector<double> stats;    // like Evaluation::stats, for this category alone
  /// Precision at the recall thresholds for all areas, [T = 10, R = 101]; -1 if the category has no
  /// objects.
  std::vector<double> precision;
};

/// The result of `analyze`. All members but `evaluation` use the largest detection limit.
struct Analysis {
  Evaluation evaluation;
  std::int64_t images = 0;
  std::vector<CategoryReport> categories;  // [K], ordered by id
  std::vector<double> precision;           // [T, R], mean over the categories with objects
  ErrorReport errors;
  Verdicts verdicts;
  OperatingPoints operating;
  ConfusionMatrix confusion;  // at the best operating point
  std::optional<Spread> spread;
  std::size_t draws = 0;  // number of resamples for `spread`
  std::optional<Comparison> versus;
};

/// Returns the positions of the categories with objects, by increasing AP.
std::vector<std::size_t> weakest_first(const Analysis& analysis);

/// Matches and scores detections once and analyzes the outcome. With `draws` > 0, also computes
/// bootstrap intervals; with `versus`, also compares with those detections, using the same number
/// of draws. REQUIRES: draws > 0 with `versus`.
Analysis analyze(const Dataset& truth, const Detections& detections, const EvaluateOptions& options,
                 std::size_t draws = 0, const Detections* versus = nullptr);

}  // namespace millrace::coco
