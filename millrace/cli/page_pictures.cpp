#include "millrace/cli/page_pictures.h"

#include <algorithm>
#include <variant>

#include "millrace/coco/drawing/page_picture.h"

namespace millrace::cli {

double outline_tolerance(cv::Size image, int side) {
  constexpr double kSeen = 0.7;  // pixels of the thumbnail
  return kSeen * std::max(1., static_cast<double>(std::max(image.width, image.height)) / side);
}

std::string outline_of(const coco::Segmentation& shape, double tolerance) {
  if (const auto* mask = std::get_if<coco::Rle>(&shape))
    return coco::outline_path(*mask, tolerance);
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
    return coco::outline_path(*polygons, tolerance);
  return "";
}

std::vector<page::Shape> annotated(const Instances& objects, double tolerance) {
  std::vector<page::Shape> shapes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    shapes.push_back({.category = objects.classes[i],
                      .box = {box.x1, box.y1, box.width(), box.height()},
                      .outline = outline_of(objects.segmentations[i], tolerance),
                      .kind = page::Shape::annotated,
                      .note = objects.crowd[i] ? "crowd" : ""});
  }
  return shapes;
}

}  // namespace millrace::cli
