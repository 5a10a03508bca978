// The inner boundary of masks, which Boundary IoU compares (Cheng and others, CVPR 2021, arXiv
// 2103.16562). Pure; any thread may call it.
#pragma once

#include <cstdint>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// The pixels of a mask whose square of (2 * by + 1) x (2 * by + 1) pixels lies wholly inside it;
/// what lies beyond the image is outside. Run by run: no bitmap is made.
Rle eroded(const Rle& mask, std::uint32_t by);

/// How wide a boundary is in an image of this size, pixels: 0.02 of the diagonal, at least 1,
/// rounded as boundary-iou-api does (halves to even).
std::uint32_t boundary_width(std::uint32_t height, std::uint32_t width);

/// The pixels of a mask that lie within that width of its outline or of the image's border.
Rle boundary(const Rle& mask);

}  // namespace millrace::coco
