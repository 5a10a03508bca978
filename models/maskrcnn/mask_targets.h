// Targets of the mask head: the part of an object's shape that lies in a region.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/layers/truth_pack.h"

namespace millrace {

enum class MaskTarget {
  binary,  // each shape is rasterised inside its box alone
  soft,    // torchvision's: ROIAlign of the full-image mask, values between 0 and 1
};
inline std::vector<std::string> value_names(MaskTarget) { return {"binary", "soft"}; }

/// Targets of the regions of a batch: boxes (F, 4), each with an object (F) int64 of the pack that
/// has a shape -> (F, size, size) float. Only binary targets of polygons are made without a wait
/// for the device.
at::Tensor mask_targets(const TruthPack& pack, const std::vector<Truth>& truths,
                        const at::Tensor& objects, const at::Tensor& boxes, std::int64_t size,
                        MaskTarget kind);

}  // namespace millrace
