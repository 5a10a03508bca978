// The inner boundary of masks as in Boundary IoU (Cheng and others, CVPR 2021, arXiv 2103.16562).
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// Returns the pixels whose square of (2 * by + 1) x (2 * by + 1) pixels is completely inside the
/// mask. Pixels beyond the image count as outside. Works on runs without a bitmap.
Rle eroded(const Rle& mask, std::uint32_t by);

/// Returns the width of a boundary in an image of this size, in pixels: 0.02 of the diagonal, at
/// least 1, rounded like boundary-iou-api (half to even).
std::uint32_t boundary_width(std::uint32_t height, std::uint32_t width);

/// Returns the pixels of a mask within boundary_width of its outline or of the image's border.
Rle boundary(const Rle& mask);

}  // namespace millrace::coco
