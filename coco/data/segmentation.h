// The shapes in COCO's JSON: boxes, polygons, run lengths as numbers or as text, keypoints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Reads a `bbox`, x y width height; false for []. Throws Wrong, also for a negative size.
bool read_box(JsonReader& json, std::span<double, 4> box);

/// Appends `keypoints`, x y v of each, and returns how many they are; null and [] are none. Throws
/// Wrong.
std::uint16_t read_keypoints(JsonReader& json, std::vector<double>& to);

/// Reads a `segmentation` into the arrays of `records`; null and [] are none. Throws Wrong.
ShapeRef read_segmentation(JsonReader& json, Records& records);

/// The `segmentation` of a detection: none, run lengths as compressed text, or polygons.
struct DetectionShape {
  const char* at = nullptr;  // where counts or polygons begin, for Wrong
  std::uint32_t height = 0, width = 0;
  std::string_view counts;  // run lengths, unchecked; in the JSON's memory or in `encoded`
  std::string encoded;      // from counts that are written as numbers
  std::vector<Polygon> polygons;
};

/// Reads a detection's `segmentation` into `shape`; null and [] are none. Throws Wrong.
void read_segmentation(JsonReader& json, DetectionShape& shape);

/// The same as `shape_area` of a Segmentation, for a shape in `records`.
double shape_area(const ShapeRef& shape, const Records& records);

}  // namespace millrace::coco
