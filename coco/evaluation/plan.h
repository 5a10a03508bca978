// What an evaluation asks for, checked and put in order for one data set.
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

/// A bit for each of up to 16 thresholds of IoU.
using ThresholdBits = std::uint16_t;
inline constexpr std::size_t kWordBits = 16;

/// Positions of the categories that are evaluated.
class Categories {
 public:
  Categories(const Dataset& truth, const EvaluateOptions& options);

  const std::vector<std::int64_t>& ids() const { return ids_; }

  /// -1: it is not evaluated.
  int operator()(std::int64_t id) const {
    if (id < 0 || id >= kSmall) return search(id);
    return static_cast<std::size_t>(id) < small_.size() ? small_[static_cast<std::size_t>(id)] : -1;
  }

 private:
  static constexpr std::int64_t kSmall = 4096;  // ids below are found without a search
  int search(std::int64_t id) const;

  std::vector<std::int64_t> ids_;
  std::vector<int> small_;
  std::vector<std::pair<std::int64_t, int>> sorted_;  // id, position
};

/// The sizes of an evaluation's tables, and what words of threshold bits a detection has: a word
/// for 16 thresholds, one range of areas after the other.
struct Extent {
  std::size_t thresholds = 0, areas = 0;
  std::size_t categories = 0;  // 1 where they are joined

  std::size_t words() const { return (thresholds + kWordBits - 1) / kWordBits; }  // of an area
  std::size_t outcomes() const { return areas * words(); }
  /// The bits of thresholds in a word of an area.
  ThresholdBits every(std::size_t word) const {
    const std::size_t left = thresholds - word * kWordBits;
    return static_cast<ThresholdBits>(left >= kWordBits ? 0xffff : (1U << left) - 1);
  }
};

struct Plan {
  /// Borrows the data set. Throws std::invalid_argument as `evaluate`.
  Plan(const Dataset& data, EvaluateOptions given);

  /// Whether an object or detection of this area is looked at.
  bool has_area(double area) const {
    return !options.federated || (area > 0 && area < std::numeric_limits<double>::infinity());
  }

  /// Whether an object can be taken many times.
  bool crowd(const Annotation& object) const { return object.crowd && !options.federated; }

  /// Whether evaluation asks for an object: it is ignored elsewhere.
  bool counts(const Annotation& object, std::size_t area) const {
    const bool ignored = options.federated ? object.ignored || !has_area(object.area)
                                           : object.crowd || (options.iou == IouType::keypoints &&
                                                              object.num_keypoints == 0);
    return !ignored && options.area_ranges[area].has(object.area);
  }

  /// The thresholds that an overlap reaches, among those of a word.
  ThresholdBits reached(double overlap, std::size_t word) const {
    unsigned bits = 0;
    const std::size_t begin = word * kWordBits, end = std::min(levels.size(), begin + kWordBits);
    for (std::size_t t = begin; t < end; ++t)
      bits |= static_cast<unsigned>(!(overlap < levels[t])) << (t - begin);
    return static_cast<ThresholdBits>(bits);
  }

  const Dataset& truth;
  EvaluateOptions options;  // limits ascending
  Categories category;
  Extent extent;
  std::vector<double> levels;     // (T) thresholds as overlaps are held against them
  double least = 0;               // the lowest of them
  std::vector<double> variances;  // of keypoints
};

}  // namespace millrace::coco
