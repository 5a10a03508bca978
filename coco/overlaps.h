// IoU of the detections and objects of one image, as COCO's evaluator takes it. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "coco/annotations.h"

namespace millrace::coco {

using Found = std::span<const Detection* const>;
using Objects = std::span<const Annotation* const>;

/// (D, G) row-major; crowds as in `mask_iou`. A detection without a box has that of its mask.
std::vector<double> box_overlaps(Found detections, Objects objects);

/// The same for masks of objects of `truth`; a detection without a mask has its box filled. Values below `least` may come out as 0.
std::vector<double> mask_overlaps(Found detections, Objects objects, const Dataset& truth,
                                  const Image& image, double least);

}  // namespace millrace::coco
