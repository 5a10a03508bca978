// Boxes in DETR's format: centre x, centre y, width, height, as fractions of the network input's
// width and height.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/onnx/graph.h>
#include <millrace/models/ops/box_formats.h>

namespace millrace::rtdetr {

/// Returns the logits of values in [0, 1]; values within 1e-5 of 0 or 1 are moved to that distance.
at::Tensor inverse_sigmoid(const at::Tensor& shares);
onnx::Value inverse_sigmoid(const onnx::Value& shares);

/// IoU and generalised IoU (Rezatofighi et al. 2019), each (...).
struct Overlap {
  at::Tensor iou, giou;
};

/// Computes the overlaps of boxes x1, y1, x2, y2 (..., 4), which are broadcast.
Overlap overlap_of(const at::Tensor& a, const at::Tensor& b);

}  // namespace millrace::rtdetr
