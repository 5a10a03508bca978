#pragma once

#include <cstdint>

#include "millrace/coco/masks/masks.h"

namespace millrace {

/// One object found in an image.
struct DetectedObject {
  Box box;                 // pixels of the original image
  std::int32_t label = 0;  // 0 .. classes - 1
  float score = 0;         // 0 .. 1
  coco::Rle mask;          // of the original image's size; no counts: the model gives no masks
};

}  // namespace millrace
