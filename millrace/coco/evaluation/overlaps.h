// IoU of the detections and objects of one image, as in COCO's evaluator. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

using Found = std::span<const std::uint32_t>;  // positions in some Detections
using Objects = std::span<const Annotation* const>;

/// Fills `out` with (D, G) row-major; crowds as in `mask_iou`. Without a box, takes that of the
/// mask.
void box_overlaps(const Detections& all, Found found, Objects objects, std::vector<double>& out);

/// The same for masks. Without a mask, takes the filled box. Values below `least` may become 0.
void mask_overlaps(const Detections& all, Found found, Objects objects, const Dataset& truth,
                   const Image& image, double least, std::vector<double>& out);

}  // namespace millrace::coco
