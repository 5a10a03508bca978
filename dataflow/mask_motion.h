// Run lengths of an image that is mirrored, resized or warped. Pure; any thread.
#pragma once

#include <cstdint>
#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>

#include "coco/masks.h"

namespace millrace {

enum class Direction { horizontal, vertical };

/// The mask's columns (horizontal) or rows in reverse order. Costs nothing but its runs and columns.
coco::Rle mirrored(const coco::Rle& mask, Direction direction);

/// The mask sampled at the centres of width x height pixels (nearest neighbour, as Pillow's NEAREST:
/// what detectron2 does), run by run, never as a bitmap.
coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height);

/// The mask moved as by `warp`, sampled at the centres of the new pixels (nearest neighbour).
coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size);

}  // namespace millrace
