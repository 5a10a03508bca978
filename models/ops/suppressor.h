// Greedy suppression of overlapping boxes, for NMS and proposals.
#pragma once

#include <cstddef>
#include <vector>

namespace millrace {

/// Returns the largest float that is not above `threshold`; a float exceeds it exactly if it
/// exceeds `threshold`.
float rounded_down(double threshold);

/// Receives boxes best first and keeps each whose IoU with every kept box is at most `threshold`.
/// The arithmetic of the IoU is torchvision's, to the bit.
class Suppressor {
 public:
  /// For up to `most` boxes. Throws std::invalid_argument if `threshold` is below 0. `offset` is
  /// added to widths and heights (1: the legacy convention).
  Suppressor(std::size_t most, double threshold, double offset);

  /// Returns true, and stores the box, if the box x1 y1 x2 y2 is kept.
  bool keep(const float* corners);

 private:
  float threshold_, offset_;
  std::size_t stride_, count_ = 0;
  // x1, y1, x2, y2, area of the kept boxes; the rest is NaN, which overlaps nothing
  std::vector<float> planes_;
};

}  // namespace millrace
