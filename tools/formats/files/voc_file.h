// Parser of Pascal VOC annotation files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/image_size.h"
#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {

struct VocObject {
  int line = 0;
  std::string name;
  bool difficult = false;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // xmin, ymin, xmax, ymax as written
  std::vector<coco::Polygon> polygons;    // from <polygon>, an extension of some tools
};

struct VocFile {
  std::string file_name;          // file name of the image; empty if not recorded
  std::optional<ImageSize> size;  // nullopt if not recorded or 0
  std::vector<VocObject> objects;
  std::vector<LineFault> faults;  // invalid objects
};

/// Parses an annotation file. Throws Error, with the line, for text that is not XML or does not
/// have an <annotation>.
VocFile parse_voc(std::string_view xml);

}  // namespace millrace::formats
