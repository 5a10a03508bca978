// Arithmetic on tensors of boxes, (N, 4) x1 y1 x2 y2 pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace millrace {

/// IoU of each pair, (A, B). Zero where both boxes are empty. `offset` is added to widths and
/// heights (1: the legacy convention).
at::Tensor box_iou(const at::Tensor& a, const at::Tensor& b, double offset = 0);

/// Boxes clipped to an image of height x width pixels.
at::Tensor clip_boxes(const at::Tensor& boxes, double height, double width);

/// Boxes to regression targets and back (R-CNN's parametrisation: shift of the centre in widths,
/// log of the ratio of sides, each times a weight).
struct BoxCoder {
  std::array<double, 4> weights = {1, 1, 1, 1};  // dx dy dw dh are multiplied by them
  double max_log_scale = 4.135166556742356;      // ln(1000 / 16): dw and dh are clamped to it
  double offset = 0;                             // as in box_iou

  /// (N, 4) proposals, (N, 4) boxes -> (N, 4) deltas
  at::Tensor encode(const at::Tensor& proposals, const at::Tensor& boxes) const;
  /// (N, 4) proposals, (N, 4 K) deltas -> (N, 4 K) boxes
  at::Tensor decode(const at::Tensor& proposals, const at::Tensor& deltas) const;
};

}  // namespace millrace
