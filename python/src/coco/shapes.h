// Segmentations from Python dicts: read with the GIL, converted to masks without it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "python/src/coco/rle_objects.h"

namespace millrace::python {

/// A segmentation as given in the dict. Create and destroy it with the GIL held.
struct Shape {
  enum class Kind { none, polygons, counts, runs } kind = Kind::none;
  std::uint32_t height = 0, width = 0;  // of counts and runs only
  std::string_view counts;              // compressed counts in the memory of `held`
  nb::object held;
  coco::Rle runs;
  std::vector<coco::Polygon> polygons;
};

/// Reads a 'segmentation'; None and [] mean no shape. Throws ValueError or TypeError.
Shape shape_of(PyObject* segmentation, const Place& place);

/// Returns the shape as a mask in an image of this size; an empty mask if there is no shape. Throws
/// Error.
coco::Rle mask_of(const Shape& shape, std::uint32_t height, std::uint32_t width);

}  // namespace millrace::python
