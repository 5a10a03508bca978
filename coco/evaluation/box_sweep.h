// Finds the boxes that may overlap a given box without comparing all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// The boxes of objects sorted by their left edges. Reuses its memory.
class BoxSweep {
 public:
  void begin(Objects objects);

  /// Returns positions of objects that may overlap `box`, in any order. The objects left out share
  /// no columns with it, so their IoU is 0. Returns all objects if an edge is not finite.
  std::span<const std::uint32_t> beside(const Xywh& box) const;

 private:
  bool finite_ = true;  // true if all edges are finite
  std::vector<std::uint32_t> by_left_;
  std::vector<double> left_;      // left edges, ascending
  std::vector<double> farthest_;  // largest right edge up to each position
};

}  // namespace millrace::coco
