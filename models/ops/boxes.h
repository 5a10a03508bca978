// Overlap, clipping and R-CNN's regression targets of boxes. A box is x1 y1 x2 y2.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "millrace/base/options.h"
#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Returns the IoU of each pair, (A, B); 0 if both boxes are empty. `offset` is added to widths and
/// heights (1: the legacy convention).
at::Tensor box_iou(const at::Tensor& a, const at::Tensor& b, double offset = 0);

/// Returns boxes clipped to an image of height x width pixels.
at::Tensor clip_boxes(const at::Tensor& boxes, double height, double width);
/// Adds nodes that clip to `limits`, which broadcast: width, height, width, height.
onnx::Value clip_boxes(const onnx::Value& boxes, const onnx::Value& limits);
/// Returns the limits (N, 4) of images whose `sizes` are (N, 2): height and width.
onnx::Value limits_of(const onnx::Value& sizes);
/// Returns widths and heights, (..., 2).
onnx::Value sides_of_boxes(const onnx::Value& boxes);

/// Converts boxes to regression targets and back, in R-CNN's parametrisation: the shift of the
/// centre in widths and heights and the log of the ratio of sides, each times a weight.
struct BoxCoder {
  std::array<double, 4> weights = {1, 1, 1, 1};  // factors of dx dy dw dh
  double max_log_scale = 4.135166556742356;      // ln(1000 / 16): upper limit of dw and dh
  double offset = 0;                             // as in box_iou

  /// Returns deltas (N, 4) of proposals (N, 4) and boxes (N, 4).
  at::Tensor encode(const at::Tensor& proposals, const at::Tensor& boxes) const;
  /// Returns boxes (N, 4 K) of proposals (N, 4) and deltas (N, 4 K).
  at::Tensor decode(const at::Tensor& proposals, const at::Tensor& deltas) const;
  /// Adds the nodes of `decode`. The shapes (..., 4) broadcast.
  onnx::Value decode(const onnx::Value& proposals, const onnx::Value& deltas) const;
};

struct BoxOptions {
  double offset = 0;
  double scale_clamp = 4.135166556742356;

  void describe(Options& o) {
    o.add("boxes.offset", offset, "offset added to box sides; 1 = the legacy convention",
          {.min = 0, .max = 1})
        .affects(WeightEffect::meaning);
    o.add("boxes.scale_clamp", scale_clamp, "maximum of dw and dh", {.min = 0})
        .affects(WeightEffect::meaning);
  }

  BoxCoder coder(const std::array<double, 4>& weights = {1, 1, 1, 1}) const {
    return {weights, scale_clamp, offset};
  }
};

}  // namespace millrace
