// Parser of LabelMe files.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/image_size.h"

namespace millrace::formats {

/// An object: all shapes with the same label and group_id, or one shape without a group.
struct LabelMeObject {
  int line = 0;  // line of its first shape
  std::string label;
  std::vector<coco::Polygon> polygons;  // empty for a rectangle or a mask
  std::optional<coco::Rle> mask;        // mask of LabelMe 5, cropped to the box
  std::array<double, 4> box{};          // x1, y1, x2, y2 of a rectangle or a mask
};

struct LabelMeFault {
  std::size_t index = 0;  // index in `shapes`
  int line = 0;
  std::string why;
};

struct LabelMeFile {
  std::string image_path;
  std::optional<ImageSize> size;  // nullopt if not recorded
  bool has_image_data = false;
  std::vector<LabelMeObject> objects;
  std::vector<LabelMeFault> faults;        // invalid shapes
  std::vector<LabelMeFault> without_area;  // points and lines; `why` is their type
};

/// Parses a LabelMe file. Throws Error, with `source`, line and byte, for text that is not JSON or
/// does not have a list `shapes`.
LabelMeFile parse_labelme(std::string text, const std::string& source);

}  // namespace millrace::formats
