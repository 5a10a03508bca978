#include "python/src/coco/shapes.h"

#include <utility>

namespace millrace::python {

Shape shape_of(PyObject* segmentation, const Place& place) {
  Shape shape;
  if (segmentation == Py_None) return shape;
  if (PyDict_Check(segmentation)) {
    PyObject* counts = keys().counts.get(segmentation, place);
    if (PyBytes_Check(counts) || PyUnicode_Check(counts)) {
      shape.kind = Shape::Kind::counts;
      size_of(segmentation, place, shape.height, shape.width);
      shape.held = nb::borrow(counts);
      shape.counts = text_of(counts, "counts", place);
    } else {
      shape.kind = Shape::Kind::runs;
      shape.runs = runs_of(segmentation, place);
      shape.height = shape.runs.height, shape.width = shape.runs.width;
    }
    return shape;
  }
  const Items parts(segmentation, "segmentation", place);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Items part(parts[i], "polygon", place);
    if (part.size() == 4) {  // pycocotools treats four numbers as a box
      double b[4];
      for (std::size_t k = 0; k < 4; ++k) b[k] = number_of(part[k], "segmentation", place);
      const double right = b[0] + b[2], bottom = b[1] + b[3];
      shape.polygons.push_back({b[0], b[1], b[0], bottom, right, bottom, right, b[1]});
    } else {
      shape.polygons.push_back(polygon_of(parts[i], place));
    }
  }
  if (!shape.polygons.empty()) shape.kind = Shape::Kind::polygons;
  return shape;
}

coco::Rle mask_of(const Shape& shape, std::uint32_t height, std::uint32_t width) {
  switch (shape.kind) {
    case Shape::Kind::none:
      return {height, width, {}};
    case Shape::Kind::counts:
      return coco::decode_counts(shape.counts, shape.height, shape.width);
    case Shape::Kind::runs:
      return shape.runs;
    case Shape::Kind::polygons:
      return coco::from_polygons(shape.polygons, height, width);
  }
  return {};
}

}  // namespace millrace::python
