// Segmentations of dicts, collected with the GIL and converted to masks without it, and masks as
// Python objects: {'size': [height, width], 'counts': bytes, str or numbers}.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"
#include "python/src/coco/objects.h"

namespace millrace::python {

/// A mask whose compressed counts are not decoded yet.
struct RleText {
  std::uint32_t height = 0, width = 0;
  std::string_view counts;  // in the memory of `held` or of the caller
  nb::object held;

  coco::Rle decoded() const { return coco::decode_counts(counts, height, width); }
  coco::MaskExtent extent() const { return coco::extent_of(counts, height, width); }
};

/// Reads a list of masks. Throws TypeError for counts given as numbers.
std::vector<RleText> rle_texts(const nb::object& list, const char* name);

/// Reads a mask whose counts are numbers. Throws ValueError if they do not fill its size.
coco::Rle runs_of(PyObject* dict, const Place& place);

/// Reads a polygon of at least 3 points. Throws ValueError or TypeError.
coco::Polygon polygon_of(PyObject* coordinates, const Place& place);

/// Returns the mask of a bitmap, non-zero = inside. `down`, `right`: bytes from a pixel to the ones
/// below and to the right of it.
coco::Rle mask_of_bitmap(const std::uint8_t* first, std::uint32_t height, std::uint32_t width,
                         std::int64_t down, std::int64_t right);

/// Returns pycocotools' dict of a mask.
nb::object rle_object(std::uint32_t height, std::uint32_t width, std::string_view counts);

/// A segmentation as given in a dict: none, polygons, compressed counts, or run lengths. Create and
/// destroy it with the GIL held.
using Shape = std::variant<std::monostate, std::vector<coco::Polygon>, RleText, coco::Rle>;

inline bool is_none(const Shape& shape) { return std::holds_alternative<std::monostate>(shape); }

/// Reads a 'segmentation'; None and [] mean no shape. Throws ValueError or TypeError.
Shape shape_of(PyObject* segmentation, const Place& place);

/// Returns the shape as a mask in an image of this size; an empty mask if there is no shape. Throws
/// Error.
coco::Rle mask_of(const Shape& shape, std::uint32_t height, std::uint32_t width);

}  // namespace millrace::python
