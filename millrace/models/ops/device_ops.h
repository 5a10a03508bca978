// The operators on devices other than the CPU. A plug-in with kernels registers its own; each operator of this folder
// hands over to them where its tensors lie on such a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"

namespace millrace {

/// Arguments and results are those of the operators of the same name, checked by them; all tensors lie on the device.
struct DeviceOps {
  /// `groups` undefined: all boxes are one.
  at::Tensor (*nms)(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                    double threshold, double offset);
  std::vector<at::Tensor> (*proposals)(const at::Tensor& logits, const at::Tensor& deltas,
                                       const at::Tensor& anchors,
                                       const std::vector<std::int64_t>& level_counts,
                                       const std::vector<std::pair<double, double>>& sizes,
                                       const ProposalOptions& options);
  at::Tensor (*roi_align)(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                          const RoiAlignOptions& options);
  /// Writes all of `gradients`, the maps' in channels-last memory.
  void (*roi_align_backward)(const at::Tensor& grad_output, const at::Tensor& rois,
                             const at::Tensor& levels, const RoiAlignOptions& options,
                             at::TensorList gradients);
  Matches (*match)(const at::Tensor& truth, const at::Tensor& boxes, const MatchOptions& options);
  /// Binary targets of polygons; `boxes` (F, 4) lies on the device, so does the result.
  at::Tensor (*mask_targets)(const std::vector<const coco::Segmentation*>& shapes,
                             const at::Tensor& boxes, std::int64_t size);
};

/// For plug-ins, while they are opened.
bool register_device_ops(at::DeviceType type, const DeviceOps& ops);

/// Those of the tensor's device; nullptr for the CPU. Throws Error where no plug-in has brought any.
const DeviceOps* device_ops(const at::Tensor& tensor);

}  // namespace millrace
