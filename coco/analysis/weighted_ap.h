// AP with images that count several times or not at all, for resampling over images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// AP over all thresholds and at IoU .5; -1 if there is nothing to find.
struct ApPair {
  double ap = -1, ap50 = -1;
};

/// The mean over the categories that have something to find.
ApPair mean(std::span<const ApPair> categories);

/// Matched results, sorted once, to be scored under many weights of their images: with weight 2 as
/// if an image were in the data set twice. Const after the constructor, so any thread may measure.
class WeightedAp {
 public:
  /// Results over one data set. With results a and b of n images, weight i is that of an image in
  /// a, weight n + i of the same image in b. Both are scored as one list, so that weights which
  /// take each image from either a or b score the mixture. REQUIRES: one result or more.
  WeightedAp(const Plan& plan, std::span<const Matches* const> results);

  std::size_t categories() const { return lists_.size(); }

  /// AP of each category, all areas, all matched detections. REQUIRES: a weight per image and
  /// result.
  void measure(std::span<const std::uint16_t> weights, std::span<ApPair> categories) const;

 private:
  /// A detection that is a hit or does not count, at some threshold; bit t is for threshold t.
  struct Event {
    std::uint32_t position;  // in `images`
    std::uint16_t hit, ignored;
  };
  struct Objects {
    std::uint32_t image, count;
  };
  /// A category.
  struct List {
    std::vector<std::uint32_t> images;  // image of each detection, by falling score
    std::vector<Event> events;          // among them; the others are wrong at every threshold
    std::vector<Objects> objects;       // that count, of the images that have some
  };

  static ApPair measure(const List& list, std::span<const std::uint16_t> weights);

  std::vector<List> lists_;
};

}  // namespace millrace::coco
