// The text of one LabelMe file.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/image_size.h"

namespace millrace::formats {

/// Shapes of one label and group_id are one object; a shape without a group is one by itself.
struct LabelMeObject {
  int line = 0;  // of its first shape
  std::string label;
  std::vector<coco::Polygon> polygons;  // empty: a rectangle or a mask
  std::optional<coco::Rle> mask;        // of LabelMe 5, of the box alone
  std::array<double, 4> box{};          // x1 y1 x2 y2 of a rectangle or a mask
};

struct LabelMeFault {
  std::size_t index = 0;  // in shapes
  int line = 0;
  std::string why;
};

struct LabelMeFile {
  std::string image_path;
  std::optional<ImageSize> size;  // nullopt if not recorded
  bool has_image_data = false;
  std::vector<LabelMeObject> objects;
  std::vector<LabelMeFault> faults;        // shapes that cannot be read
  std::vector<LabelMeFault> without_area;  // points and lines; `why` is their type
};

/// Throws Error, with `source`, line and byte, for text that is no JSON or has no list `shapes`.
LabelMeFile parse_labelme(std::string text, const std::string& source);

}  // namespace millrace::formats
