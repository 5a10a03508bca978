// What a page needs of pictures and masks: small JPEGs, and edges as polygons. Any thread.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::report {

/// Closed rings of whole pixels: x0 y0 x1 y1 ...; those of holes turn the other way.
using Rings = std::vector<std::vector<int>>;

/// A JPEG of at most `most_bytes` of a (H, W, 3) 8-bit RGB picture: as large as they allow, its
/// longer side at most `most_side` pixels and, whatever the bytes, at least 64. Throws Error.
std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side = 640);

/// The edges of a shape in pixels of its image, off by at most about `tolerance` pixels; none of an
/// empty one.
Rings outline_of(const coco::Segmentation& shape, double tolerance = 1);

/// How far outlines may be off, in pixels of an image of this size, so that nobody sees it on a
/// thumbnail of `side` pixels.
double outline_tolerance(cv::Size image, int side);

}  // namespace millrace::report
