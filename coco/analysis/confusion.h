// What a detector gives at one threshold of score: precision, recall and the confusion matrix.
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstdint>
#include <vector>

#include "millrace/coco/analysis/image_pairs.h"

namespace millrace::coco {

/// All categories together at IoU .5, of the detections with at least this score.
struct OperatingPoint {
  double score = 0;
  double precision = 0, recall = 0, f1 = 0;
};

struct OperatingPoints {
  OperatingPoint best;  // the highest F1; the highest score of equals
  // By falling score, at most 200 of equal distance in number of detections
  std::vector<OperatingPoint> curve;
};

/// Empty curve and all zero if nothing is found or to be found.
OperatingPoints operating_points(const Matches& matches);

/// Counts of (K + 1) x (K + 1) pairs: rows are objects, columns detections; the last row and column
/// are background. As Ultralytics' and supervision's matrices, except that pairs follow the
/// evaluator's greedy rule: of the detections with at least `score`, best first, each takes the
/// free object of any class that it overlaps most at IoU >= .5 (of equals one of its own class). A
/// detection without an object counts as background, unless a crowd of its class takes it in, and
/// so does an object without a detection. Crowds are not objects.
struct ConfusionMatrix {
  std::size_t categories = 0;
  double score = 0;
  std::vector<std::int64_t> counts;  // row-major

  std::int64_t at(std::size_t truth, std::size_t found) const {
    return counts[truth * (categories + 1) + found];
  }
};

/// Objects of one category that were taken for another.
struct ConfusedPair {
  std::size_t truth, found;  // positions of categories
  std::int64_t count;
  double share;  // share of the objects
};

/// The most frequent, up to `most`; of equals the largest share first.
std::vector<ConfusedPair> confused_pairs(const ConfusionMatrix& matrix, std::size_t most);

/// Takes in image by image, from any thread.
class Confusion {
 public:
  /// Borrows the matches.
  Confusion(const Matches& matches, double score);

  void add(const ImagePairs& pairs);
  /// After all images.
  ConfusionMatrix matrix() const;

 private:
  const Matches& matches_;
  std::size_t categories_;
  double score_;
  tbb::enumerable_thread_specific<std::vector<std::int64_t>> counts_;  // to be summed
};

}  // namespace millrace::coco
