// Which class is taken for which.
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstdint>
#include <vector>

#include "millrace/coco/analysis/image_pairs.h"

namespace millrace::coco {

/// Counts of (K + 1) x (K + 1) pairs: rows are what is there, columns what was found; the last row
/// and column are background. As Ultralytics' and supervision's matrices, but that the pairs are
/// those of the evaluator's greedy rule: of the detections with at least `score`, the better score
/// first, each takes the free object of any class that it overlaps most at IoU >= .5 (of equals one
/// of its own class). A detection that is left counts as an object seen in the background, unless a
/// crowd of its class takes it in; an object that is left as taken for background. Crowds are no
/// objects.
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

/// The most frequent ones, at most so many; of equals the largest share, then the first.
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
  // Sums: any order gives the same
  tbb::enumerable_thread_specific<std::vector<std::int64_t>> counts_;
};

}  // namespace millrace::coco
