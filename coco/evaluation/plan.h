// The verified options of an evaluation, prepared for one data set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

/// One bit per threshold, for up to 16 IoU thresholds.
using ThresholdBits = std::uint16_t;
inline constexpr std::size_t kWordBits = 16;

/// The positions of the evaluated categories.
class Categories {
 public:
  Categories(const Dataset& truth, const EvaluateOptions& options);

  const std::vector<std::int64_t>& ids() const { return ids_; }

  /// Returns the position of a category id; -1 = not evaluated.
  int operator()(std::int64_t id) const {
    if (id < 0 || id >= kSmall) return search(id);
    return static_cast<std::size_t>(id) < small_.size() ? small_[static_cast<std::size_t>(id)] : -1;
  }

 private:
  static constexpr std::int64_t kSmall = 4096;  // ids below this are found without a search
  int search(std::int64_t id) const;

  std::vector<std::int64_t> ids_;
  std::vector<int> small_;
  std::vector<std::pair<std::int64_t, int>> sorted_;  // id, position
};

/// The sizes of an evaluation's tables, and the layout of the outcomes of a detection: one word per
/// 16 thresholds, one area range after another.
struct Extent {
  std::size_t thresholds = 0, areas = 0;
  std::size_t categories = 0;  // 1 if they are joined

  // Words per area range.
  std::size_t words() const { return (thresholds + kWordBits - 1) / kWordBits; }
  std::size_t outcomes() const { return areas * words(); }
  /// Returns the bits of all thresholds in a word.
  ThresholdBits all_bits(std::size_t word) const {
    const std::size_t left = thresholds - word * kWordBits;
    return static_cast<ThresholdBits>(left >= kWordBits ? 0xffff : (1U << left) - 1);
  }
};

struct Plan {
  /// `data` must outlive this object. Throws std::invalid_argument like `evaluate`.
  Plan(const Dataset& data, EvaluateOptions given);

  /// Returns whether objects and detections of this area are evaluated.
  bool has_area(double area) const {
    return !options.federated || (area > 0 && area < std::numeric_limits<double>::infinity());
  }

  /// Returns whether an object can be taken repeatedly.
  bool crowd(const Annotation& object) const { return object.crowd && !options.federated; }

  /// Returns whether an object counts in an area range; otherwise it is ignored there.
  bool counts(const Annotation& object, std::size_t area) const {
    const bool ignored = options.federated ? object.ignored || !has_area(object.area)
                                           : object.crowd || (options.iou == IouType::keypoints &&
                                                              object.num_keypoints == 0);
    return !ignored && options.area_ranges[area].has(object.area);
  }

  /// Returns the thresholds of a word that an overlap reaches.
  ThresholdBits reached(double overlap, std::size_t word) const {
    unsigned bits = 0;
    const std::size_t begin = word * kWordBits, end = std::min(levels.size(), begin + kWordBits);
    for (std::size_t t = begin; t < end; ++t)
      bits |= static_cast<unsigned>(!(overlap < levels[t])) << (t - begin);
    return static_cast<ThresholdBits>(bits);
  }

  const Dataset& truth;
  EvaluateOptions options;  // with ascending limits
  Categories category;
  Extent extent;
  std::vector<double> levels;     // [T] thresholds compared with overlaps
  double least = 0;               // lowest of the levels
  std::vector<double> variances;  // squared double sigmas of the keypoints
};

}  // namespace millrace::coco
