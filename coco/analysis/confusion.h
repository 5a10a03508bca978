// Precision, recall and the confusion matrix at one score threshold.
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstdint>
#include <vector>

#include "millrace/coco/analysis/image_pairs.h"

namespace millrace::coco {

/// Precision and recall at IoU .5 of the detections of all categories with at least this score.
struct OperatingPoint {
  double score = 0;
  double precision = 0, recall = 0, f1 = 0;
};

struct OperatingPoints {
  OperatingPoint best;  // highest F1; at equal F1, the highest score
  // By falling score; at most 200 points, equally spaced in the number of detections.
  std::vector<OperatingPoint> curve;
};

/// Returns the operating points; an empty curve and zeros if there are no detections or no objects.
OperatingPoints operating_points(const Matches& matches);

/// A confusion matrix of (K + 1) x (K + 1) counts: rows are objects, columns are detections, the
/// last row and column are background. Follows the matrices of Ultralytics and supervision, but
/// matches with the evaluator's greedy rule: detections with at least `score`, best first, each
/// take the free object of any category with the largest IoU >= .5 (at equal IoU, one of the
/// detection's own category). A detection without an object counts as background unless it is
/// covered by a crowd of its category; an object without a detection counts as background. Crowds
/// are not objects.
struct ConfusionMatrix {
  std::size_t categories = 0;
  double score = 0;
  std::vector<std::int64_t> counts;  // row-major

  std::int64_t at(std::size_t truth, std::size_t found) const {
    return counts[truth * (categories + 1) + found];
  }
};

/// The number of objects of one category that were detected as another.
struct ConfusedPair {
  std::size_t truth, found;  // positions of categories
  std::int64_t count;
  double share;  // share of the objects
};

/// Returns up to `most` pairs, the most frequent first; at equal counts, the largest share first.
std::vector<ConfusedPair> confused_pairs(const ConfusionMatrix& matrix, std::size_t most);

/// Builds a confusion matrix image by image. `add` is thread-safe.
class Confusion {
 public:
  /// `matches` must outlive this object.
  Confusion(const Matches& matches, double score);

  void add(const ImagePairs& pairs);
  /// Returns the matrix; call after all images are added.
  ConfusionMatrix matrix() const;

 private:
  const Matches& matches_;
  std::size_t categories_;
  double score_;
  tbb::enumerable_thread_specific<std::vector<std::int64_t>> counts_;  // one partial sum per thread
};

}  // namespace millrace::coco
