// The segmentations of dicts: collected with the GIL, made into masks without it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "python/src/coco/rle_objects.h"

namespace millrace::python {

/// A segmentation as it was written. Made and destroyed with the GIL.
struct Shape {
  enum class Kind { none, polygons, counts, runs } kind = Kind::none;
  std::uint32_t height = 0, width = 0;  // of counts and runs
  std::string_view counts;              // compressed; lies in `held`
  nb::object held;
  coco::Rle runs;
  std::vector<coco::Polygon> polygons;
};

/// Takes over a 'segmentation'; None and [] are none. Throws ValueError or TypeError.
Shape shape_of(PyObject* segmentation, const Place& place);

/// The mask, in an image of this size; none: nothing. Throws Error.
coco::Rle mask_of(const Shape& shape, std::uint32_t height, std::uint32_t width);

}  // namespace millrace::python
