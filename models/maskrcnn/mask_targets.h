// Training targets of the mask head: the part of an object's shape inside a region.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/layers/truth_pack.h"

namespace millrace {

enum class MaskTarget {
  binary,  // each shape is rasterised within its box only
  soft,    // as torchvision: ROIAlign of the full-image mask, values between 0 and 1
};
inline std::vector<std::string> value_names(MaskTarget) { return {"binary", "soft"}; }

/// Returns the targets (F, size, size) float of a batch's regions: boxes (F, 4), each with the
/// index of an object (F) int64 of the pack that has a shape. Synchronizes with the device, except
/// for binary targets of polygons.
at::Tensor mask_targets(const TruthPack& pack, const std::vector<Truth>& truths,
                        const at::Tensor& objects, const at::Tensor& boxes, std::int64_t size,
                        MaskTarget kind);

}  // namespace millrace
