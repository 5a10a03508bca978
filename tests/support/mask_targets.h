// Targets of the mask head for the regions of one image.
#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "millrace/models/maskrcnn/mask_targets.h"

namespace millrace {

/// Returns the mask targets of F objects, float [F, size, size]. `boxes` is [F, 4] in pixels;
/// `height` and `width` are those of the image.
inline at::Tensor mask_targets(const std::vector<const coco::Segmentation*>& shapes,
                               const at::Tensor& boxes, std::int64_t size, MaskTarget kind,
                               double height, double width) {
  const auto count = std::ssize(shapes);
  const std::vector<Truth> truths{{.boxes = at::zeros({count, 4}, boxes.options()),
                                   .labels = at::zeros({count}, boxes.options().dtype(at::kLong)),
                                   .segmentations = shapes,
                                   .height = height,
                                   .width = width}};
  return mask_targets(*pack_of(truths), truths, at::arange(count, boxes.options().dtype(at::kLong)),
                      boxes, size, kind);
}

}  // namespace millrace
