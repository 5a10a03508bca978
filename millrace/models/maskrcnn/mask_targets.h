// Targets of the mask head: the part of an object's shape that lies in a region.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace {

/// Shapes (F) in the pixels of their boxes (F, 4) -> (F, size, size) float.
/// "binary": each shape is rasterised inside its box alone. "soft": torchvision's, ROIAlign of the
/// full-image mask of height x width, values between 0 and 1.
at::Tensor mask_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, const std::string& kind,
                        double height, double width);

}  // namespace millrace
