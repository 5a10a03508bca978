// The masks of an image's objects as one picture of values.
#pragma once

#include <cstddef>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/findings.h"
#include "millrace/tools/formats/files/png_values.h"

namespace millrace::formats {

struct ValuePicture {
  PngValues picture;        // value k + 1: object k, 0: none
  std::vector<bool> shown;  // whether object k has a pixel
};

/// Shared pixels go to the smallest object, of equal ones to the later. Tells which masks lose
/// some. Objects without a shape, and crowds unless `with_crowds`, have no pixel.
ValuePicture value_picture(const coco::Dataset& data, const coco::Image& image, bool with_crowds,
                           coco::Findings& findings);

}  // namespace millrace::formats
