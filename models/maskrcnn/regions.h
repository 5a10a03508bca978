// Features of regions, each taken from the pyramid level that fits its size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/maskrcnn/options.h"

namespace millrace {

/// The pyramid level of each box, (R) int64 in 2..5 (Lin et al. 2017, equation 1).
at::Tensor region_levels(const at::Tensor& boxes, const MaskRcnnOptions& options);

/// features P2..P5 (N, C, H_l, W_l); rois (R, 5): image index, x1 y1 x2 y2 -> (R, C, size, size)
at::Tensor pool_regions(const std::vector<at::Tensor>& features, const at::Tensor& rois,
                        std::int64_t size, const MaskRcnnOptions& options);

/// Boxes of image 0, 1, ... as one list of rois, (R, 5).
at::Tensor as_rois(const std::vector<at::Tensor>& boxes);

}  // namespace millrace
