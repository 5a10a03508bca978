// Boxes as DETR has them: centre x, centre y, width, height, in sides of the network's input.
#pragma once

#include <ATen/core/Tensor.h>

namespace rtdetr {

/// (..., 4) as x1 y1 x2 y2, and back.
at::Tensor corners_of(const at::Tensor& boxes);
at::Tensor centers_of(const at::Tensor& corners);

/// The logits of shares; those within 1e-5 of 0 and 1 count as 1e-5 away.
at::Tensor inverse_sigmoid(const at::Tensor& shares);

/// IoU and generalised IoU (Rezatofighi et al. 2019), (...) each.
struct Overlap {
  at::Tensor iou, giou;
};

/// Of corners (..., 4) that broadcast.
Overlap overlap_of(const at::Tensor& a, const at::Tensor& b);

}  // namespace rtdetr
