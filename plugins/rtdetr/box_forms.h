// Boxes as DETR has them: centre x, centre y, width, height, in sides of the network's input.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/onnx/graph.h>
#include <millrace/models/ops/box_formats.h>

namespace rtdetr {

using millrace::centers_of;
using millrace::corners_of;
namespace onnx = millrace::onnx;

/// The logits of shares; those within 1e-5 of 0 and 1 count as 1e-5 away.
at::Tensor inverse_sigmoid(const at::Tensor& shares);
onnx::Value inverse_sigmoid(const onnx::Value& shares);

/// IoU and generalised IoU (Rezatofighi et al. 2019), (...) each.
struct Overlap {
  at::Tensor iou, giou;
};

/// Of corners (..., 4) that broadcast.
Overlap overlap_of(const at::Tensor& a, const at::Tensor& b);

}  // namespace rtdetr
