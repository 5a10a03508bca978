// What a gallery of a page needs of pictures and masks (millrace/page/gallery.h). Any thread.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <span>
#include <string>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// A JPEG of at most so many bytes of a (H, W, 3) 8-bit RGB picture: as large as they allow, its
/// longer side at most `most_side` pixels and, whatever the bytes, at least 64. Throws Error.
std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side = 640);

/// The edges of a mask as an SVG path in whole pixels of its image, off by at most about
/// `tolerance` pixels; "" of an empty mask.
std::string outline_path(const Rle& mask, double tolerance = 1);
/// The same of polygons: x0 y0 x1 y1 ... in pixels.
std::string outline_path(std::span<const Polygon> polygons, double tolerance = 1);

}  // namespace millrace::coco
