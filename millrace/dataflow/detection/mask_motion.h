// Run lengths of an image that is mirrored, resized or warped. Pure; any thread.
#pragma once

#include <cstdint>
#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/coco/masks/masks.h"

namespace millrace {

enum class Direction { horizontal, vertical };
inline std::vector<std::string> value_names(Direction) { return {"horizontal", "vertical"}; }

/// Which pixel is taken for the new pixel i of n, nearest neighbour from m.
enum class Sampling {
  centres,  // the one at its centre, floor((i + 1/2) m / n): Pillow's NEAREST, so detectron2's
  corners,  // the one at its corner, floor(i m / n) in float: torch's `nearest`, so torchvision's
};

/// The mask's columns (horizontal) or rows in reverse order. Costs nothing but its runs and
/// columns.
coco::Rle mirrored(const coco::Rle& mask, Direction direction);

/// The mask sampled at width x height pixels, run by run, never as a bitmap.
coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height,
                  Sampling sampling = Sampling::centres);

/// The mask moved as by `warp`, sampled at the centres of the new pixels (nearest neighbour).
coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size);

}  // namespace millrace
