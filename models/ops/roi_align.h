// ROIAlign (He et al. 2017) on the CPU, forward and backward: multi-threaded, deterministic, channels last.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

struct RoiAlignOptions {
  std::int64_t size = 7;            // cells a side
  double scale = 1;                 // feature pixels per image pixel, e.g. 1/4
  std::int64_t sampling_ratio = 0;  // samples a cell and axis; 0: adaptive, ceil(side / size)
  bool aligned = true;              // half-pixel shift of detectron2; false: torchvision's default
};

/// features (N, C, H, W) float, any memory format; rois (R, 5) float: image index, x1 y1 x2 y2 in image pixels.
/// Gives (R, C, size, size), channels last in memory. Differentiable in `features`.
at::Tensor roi_align(const at::Tensor& features, const at::Tensor& rois,
                     const RoiAlignOptions& options);

}  // namespace millrace
