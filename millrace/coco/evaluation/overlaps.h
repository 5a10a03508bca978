// IoU of the detections and objects of one image, as COCO's evaluator takes it. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

using Found = std::span<const std::uint32_t>;  // positions in some Detections
using Objects = std::span<const Annotation* const>;

/// Fills `out` with (D, G) row-major; crowds as in `mask_iou`. A detection without a box has that
/// of its mask.
void box_overlaps(const Detections& all, Found found, Objects objects, std::vector<double>& out);

/// The same for masks of objects of `truth`; a detection without a mask has its box filled. Values
/// below `least` may come out as 0.
void mask_overlaps(const Detections& all, Found found, Objects objects, const Dataset& truth,
                   const Image& image, double least, std::vector<double>& out);

}  // namespace millrace::coco
