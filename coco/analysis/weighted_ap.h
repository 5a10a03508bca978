// AP with a weight per image, for resampling over images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// AP over all IoU thresholds and at IoU .5; -1 if there are no objects.
struct ApPair {
  double ap = -1, ap50 = -1;
};

/// Returns the mean over the categories with objects.
ApPair mean(std::span<const ApPair> categories);

/// Matched results, sorted once and scored under many image weights. Weight 2 counts an image as if
/// it were in the data set twice. Immutable, so thread-safe.
class WeightedAp {
 public:
  /// Takes one or more results over the same data set. For results a and b of n images, weight i
  /// applies to image i in a, and weight n + i to image i in b. All results are scored as one list,
  /// so that weights which take each image from either a or b score the mixture.
  WeightedAp(const Plan& plan, std::span<const Matches* const> results);

  std::size_t categories() const { return lists_.size(); }

  /// Computes AP of each category over all areas and all matched detections. REQUIRES: one weight
  /// per image and result.
  void measure(std::span<const std::uint16_t> weights, std::span<ApPair> categories) const;

 private:
  /// A detection that is a hit or ignored at some threshold; bit t stands for threshold t.
  struct Event {
    std::uint32_t position;  // position in `images`
    std::uint16_t hit, ignored;
  };
  struct Objects {
    std::uint32_t image, count;
  };
  /// The detections and objects of a category.
  struct List {
    std::vector<std::uint32_t> images;  // image of each detection, by falling score
    std::vector<Event> events;          // the other detections are wrong at every threshold
    std::vector<Objects> objects;       // counted objects per image, for images with any
  };

  static ApPair measure(const List& list, std::span<const std::uint16_t> weights);

  std::vector<List> lists_;
};

}  // namespace millrace::coco
