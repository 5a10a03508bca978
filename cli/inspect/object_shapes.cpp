#include "millrace/cli/inspect/object_shapes.h"

namespace millrace::cli {

std::vector<report::Shape> shapes_of(const Instances& objects, double tolerance) {
  std::vector<report::Shape> shapes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    const bool crowd = objects.crowd[i] != 0;
    shapes.push_back({.category = objects.classes[i],
                      .box = {box.x1, box.y1, box.width(), box.height()},
                      .outline = report::outline_of(objects.segmentations[i], tolerance),
                      .kind = report::Shape::annotated,
                      .crowd = crowd,
                      .note = crowd ? "crowd" : ""});
  }
  return shapes;
}

}  // namespace millrace::cli
