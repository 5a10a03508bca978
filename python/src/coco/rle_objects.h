// Masks as Python objects: {'size': [height, width], 'counts': bytes, str or numbers}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// Reads the 'size' of a mask. Throws ValueError or TypeError.
void size_of(PyObject* dict, const Place& place, std::uint32_t& height, std::uint32_t& width);

/// Reads a list of masks. Throws TypeError for counts given as numbers.
std::vector<RleText> rle_texts(const nb::object& list, const char* name);

/// Reads a mask whose counts are numbers. Throws ValueError if they do not add up to its number of
/// pixels.
coco::Rle runs_of(PyObject* dict, const Place& place);

/// Reads a polygon of at least 3 points. Throws ValueError or TypeError.
coco::Polygon polygon_of(PyObject* coordinates, const Place& place);

/// Returns a mask as a dict, as pycocotools does.
nb::object rle_object(std::uint32_t height, std::uint32_t width, std::string_view counts);

}  // namespace millrace::python
