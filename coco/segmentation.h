// The shapes in COCO's JSON: polygons, run lengths as numbers or as text.
#pragma once

#include "coco/json.h"
#include "coco/records.h"

namespace millrace::coco {

/// Reads a `segmentation` into the arrays of `records`; null and [] are none. Throws Wrong.
ShapeRef read_segmentation(json::value value, Records& records);

/// Reads a `segmentation` that must not be polygons; null and [] give no counts. Throws Wrong.
Rle read_mask(json::value value);

/// Area of a shape of `records` in pixels: of polygons by their vertices, of a mask by counting. 0 for none.
double shape_area(const ShapeRef& shape, const Records& records);

}  // namespace millrace::coco
