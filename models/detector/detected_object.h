#pragma once

#include <cstdint>

#include "millrace/coco/masks/masks.h"

namespace millrace {

/// A detection in an image.
struct DetectedObject {
  Box box;                 // in pixels of the original image
  std::int32_t label = 0;  // 0 .. classes - 1
  float score = 0;         // 0 .. 1
  coco::Rle mask;          // in the original image's size; empty counts = no mask
};

}  // namespace millrace
