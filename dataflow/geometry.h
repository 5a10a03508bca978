// What happens to boxes and shapes when their image is mirrored or resized.
#pragma once

#include "coco/masks.h"
#include "dataflow/sample.h"

namespace millrace {

/// Mirrors objects left to right about an image `width` pixels wide: x becomes width - x, and run
/// lengths exchange columns.
void mirror(Instances& objects, std::int32_t width);

/// Takes objects into an image `width` x `height` whose pixels are `scale_x`, `scale_y` times as many.
void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y);

/// The mask's columns in reverse order. Costs nothing but its runs and columns.
coco::Rle mirrored(const coco::Rle& mask);

/// The mask sampled at the centres of width x height pixels (nearest neighbour, as Pillow's NEAREST:
/// what detectron2 does), run by run, never as a bitmap.
coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height);

}  // namespace millrace
