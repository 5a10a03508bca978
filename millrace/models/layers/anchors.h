// Anchors: reference boxes at every place of every feature map.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace {

struct AnchorOptions {
  std::vector<std::vector<double>> sizes;    // a list a level: square root of the area, pixels
  std::vector<double> ratios = {0.5, 1, 2};  // height / width
  /// exact (detectron2), rounded (torchvision rounds the cell's corners), legacy (quantised
  /// py-faster-rcnn cells).
  std::string cells = "exact";
};

/// The cell's boxes of one level around (0, 0), (A, 4): sizes outer, ratios inner.
at::Tensor cell_anchors(const std::vector<double>& sizes, const AnchorOptions& options,
                        double stride);

/// All anchors of one level, (H W A, 4), order y, x, A. `stride` is (y, x) in pixels.
at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride);

}  // namespace millrace
