// ROIAlign (He et al. 2017), forward and backward, channels last. The CPU kernels are
// multi-threaded and deterministic.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

struct RoiAlignOptions {
  std::int64_t height = 7, width = 7;  // cells
  /// Pixels of the first map per image pixel, e.g. 1/4; each further map has half the scale of its
  /// predecessor.
  double scale = 1;
  std::int64_t sampling_ratio = 0;  // samples per cell and axis; 0 = adaptive, ceil(side / cells)
  bool aligned = true;              // half-pixel shift of detectron2; false = torchvision's default
};

/// Takes maps (N, C, H_l, W_l) of one type in any memory format; rois (R, 5): image index, x1 y1 x2
/// y2 in image pixels; levels (R) int64: the map that each region is pooled from, undefined = the
/// first. Returns (R, C, height, width), channels last in memory. Differentiable in `maps`. Float
/// and double are computed as such, narrower types as float. A region that is not finite gives
/// zeros. Throws std::invalid_argument for shapes and types that do not fit, and for images and
/// levels that do not exist.
at::Tensor roi_align(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                     const RoiAlignOptions& options);

}  // namespace millrace
