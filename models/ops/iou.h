// IoU of one box with many: the inner loop of box_iou and of the matcher.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

/// Coordinates of (N, 4) float boxes as contiguous planes, for vector loads.
struct BoxPlanes {
  explicit BoxPlanes(const at::Tensor& boxes);

  std::int64_t count;
  at::Tensor memory;  // (4, N)
  const float *x1, *y1, *x2, *y2;
};

/// Writes the IoU of box `row` of `a` with boxes begin .. end - 1 of `b` to result[0 ..], in
/// torchvision's order of operations, to the bit; 0 if both boxes are empty or one is not finite.
/// `offset` is added to widths and heights.
void iou_row(const BoxPlanes& a, std::int64_t row, const BoxPlanes& b, std::int64_t begin,
             std::int64_t end, float offset, float* result);

}  // namespace millrace
