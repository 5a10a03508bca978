// Readers of COCO's annotations in JSON and of their shapes: boxes, polygons, run lengths as
// numbers or text, keypoints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Reads a `bbox` as x, y, width, height. Returns false for []. Throws Wrong, also for a negative
/// size.
bool read_box(JsonReader& json, std::span<double, 4> box);

/// Appends `keypoints` as x, y, v and returns their number; 0 for null and []. Throws Wrong.
std::uint16_t read_keypoints(JsonReader& json, std::vector<double>& to);

/// Reads a `segmentation` into the arrays of `records`; null and [] mean no shape. Throws Wrong.
ShapeRef read_segmentation(JsonReader& json, Records& records);

/// The `segmentation` of a detection: none, run lengths as compressed text, or polygons.
struct DetectionShape {
  const char* at = nullptr;  // beginning of counts or polygons, for Wrong
  std::uint32_t height = 0, width = 0;
  std::string_view counts;  // unverified run lengths, in the JSON's memory or in `encoded`
  std::string encoded;      // encoded from counts written as numbers
  std::vector<Polygon> polygons;
};

/// Reads a detection's `segmentation` into `shape`; null and [] mean no shape. Throws Wrong.
void read_segmentation(JsonReader& json, DetectionShape& shape);

/// Returns the area of a shape in `records`, equal to `shape_area` of its Segmentation.
double shape_area(const ShapeRef& shape, const Records& records);

/// Reads a record of "annotations" and appends it to `records`. Throws Wrong.
void read_annotation(JsonReader& json, Records& records);

}  // namespace millrace::coco
