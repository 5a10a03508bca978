// The shapes in COCO's JSON: polygons, run lengths as numbers or as text.
#pragma once

#include "coco/annotations.h"
#include "coco/json.h"

namespace millrace::coco {

/// Reads a `segmentation`; null and [] are none. Throws Wrong.
Segmentation read_segmentation(json::value value);

}  // namespace millrace::coco
