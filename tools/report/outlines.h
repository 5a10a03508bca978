// Thumbnails of images, and edges of masks as polygons, for pages. Thread-safe.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::report {

/// Closed rings of integer pixels: x0, y0, x1, y1, ...; rings of holes have the opposite
/// orientation.
using Rings = std::vector<std::vector<int>>;

/// Encodes an 8-bit RGB image (H, W, 3) as a JPEG of up to `most_bytes`, as large as possible with
/// a longer side of up to `most_side` pixels. The longer side is at least 64 pixels, even if the
/// JPEG is then larger. Throws Error.
std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side = 640);

/// Returns the edges of a shape in pixels of its image, within about `tolerance` pixels; empty for
/// an empty shape.
Rings outline_of(const coco::Segmentation& shape, double tolerance = 1);

/// Returns the outline tolerance, in pixels of the image, that is invisible on a thumbnail of
/// `side` pixels.
double outline_tolerance(cv::Size image, int side);

}  // namespace millrace::report
