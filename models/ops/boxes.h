// Boxes as tensors: overlap, clipping, and the regression targets of R-CNN. A box is x1 y1 x2 y2.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "millrace/base/options.h"
#include "millrace/models/onnx/graph.h"

namespace millrace {

/// IoU of each pair, (A, B). Zero where both boxes are empty. `offset` is added to widths and
/// heights (1: the legacy convention).
at::Tensor box_iou(const at::Tensor& a, const at::Tensor& b, double offset = 0);

/// Boxes clipped to an image of height x width pixels.
at::Tensor clip_boxes(const at::Tensor& boxes, double height, double width);
/// The same with `limits` that broadcast: width, height, width, height.
onnx::Value clip_boxes(const onnx::Value& boxes, const onnx::Value& limits);
/// Of sizes (N, 2), height and width: such limits (N, 4).
onnx::Value limits_of(const onnx::Value& sizes);
/// Width and height, (..., 2).
onnx::Value sides_of_boxes(const onnx::Value& boxes);

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
  /// Shapes (..., 4) that broadcast.
  onnx::Value decode(const onnx::Value& proposals, const onnx::Value& deltas) const;
};

struct BoxOptions {
  double offset = 0;
  double scale_clamp = 4.135166556742356;

  void describe(Options& o) {
    o.add("boxes.offset", offset, "added to box sides; 1 is the legacy convention",
          {.min = 0, .max = 1})
        .decides(OfWeights::meaning);
    o.add("boxes.scale_clamp", scale_clamp, "dw and dh are cut there", {.min = 0})
        .decides(OfWeights::meaning);
  }

  BoxCoder coder(const std::array<double, 4>& weights = {1, 1, 1, 1}) const {
    return {weights, scale_clamp, offset};
  }
};

}  // namespace millrace
