// Greedy suppression of overlapping boxes, for nms and the proposals.
#pragma once

#include <cstddef>
#include <vector>

namespace millrace {

/// The largest float that is not above `threshold`: comparing with it is comparing with the double
/// itself.
float rounded_down(double threshold);

/// Takes boxes best first and keeps each that overlaps none of those kept before by more than
/// `threshold`. The arithmetic of the IoU is torchvision's, to the bit.
class Suppressor {
 public:
  /// For up to `most` boxes. `threshold` is at least 0 (std::invalid_argument); `offset` is added
  /// to widths and heights (1: the legacy convention).
  Suppressor(std::size_t most, double threshold, double offset);

  /// Whether the box of corners x1 y1 x2 y2 is kept.
  bool keep(const float* corners);

 private:
  float threshold_, offset_;
  std::size_t stride_, count_ = 0;
  // x1, y1, x2, y2, area of the kept boxes; the rest is NaN, which overlaps nothing
  std::vector<float> planes_;
};

}  // namespace millrace
