// Which of many boxes one may overlap, without looking at all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// The boxes of objects by their left edges. Reuses its memory.
class BoxSweep {
 public:
  void begin(Objects objects);

  /// Positions of the objects, in any order, without most of those that share no columns with a
  /// box: an overlap with one that is missing is 0. All of them where an edge is not finite.
  std::span<const std::uint32_t> beside(const Xywh& box) const;

 private:
  bool finite_ = true;  // all edges
  std::vector<std::uint32_t> by_left_;
  std::vector<double> left_;      // ascending
  std::vector<double> farthest_;  // right edge among those up to here
};

}  // namespace millrace::coco
