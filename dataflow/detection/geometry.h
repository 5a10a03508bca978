// Points, boxes and shapes of an image that is mirrored, resized, cropped, warped or covered.
// Continuous coordinates: pixel i spans i .. i+1. Pure and thread-safe.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <span>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Returns the part of a polygon inside 0 .. width, 0 .. height (Sutherland and Hodgman 1974).
/// Parts are joined by bridges along the border, which contain no pixels. Empty if no area is
/// inside; unchanged numbers if all of it is.
coco::Polygon clipped(const coco::Polygon& polygon, cv::Size image);

/// Returns the part of a box inside the image.
Box clipped(const Box& box, cv::Size image);

/// Returns the smallest box around polygons. REQUIRES: at least one point.
Box bounds(std::span<const coco::Polygon> polygons);

/// Returns the point matrix * (x, y, 1).
cv::Vec2d transformed(double x, double y, const cv::Matx23d& matrix);
/// Returns the box around the transformed corners.
Box transformed(const Box& box, const cv::Matx23d& matrix);

/// Returns the inverse. Throws std::invalid_argument if the matrix is not invertible.
cv::Matx23d inverse(const cv::Matx23d& matrix);

/// Mirrors objects left to right (horizontal) or top to bottom in an image of `side` pixels in that
/// direction: x becomes side - x, and the columns (or rows) of run-length masks are reversed.
void mirror(Instances& objects, std::int32_t side, Direction direction);

/// Scales objects to an image of `width` x `height`; run-length masks are sampled.
void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y, Sampling sampling = Sampling::centres);

/// Moves objects into the part of the image under `window`, which may extend beyond the image.
/// Run-length masks are cut exactly, polygons at the window's border. An object that is cut gets
/// the box around the rest of its shape, or its clipped box if it has no shape; other boxes are
/// only shifted.
void crop(Instances& objects, const cv::Rect& window, const Visibility& visibility);

/// Moves objects into an image of `size`; point p of the old image moves to matrix * (p, 1). An
/// upright, uncut box is moved itself; another box becomes the one around the rest of its shape, or
/// around its moved corners if it has none. REQUIRES: an invertible matrix.
void warp(Instances& objects, const cv::Matx23d& matrix, cv::Size size,
          const Visibility& visibility);

/// Returns the mask of a shape in an image of size `image`; empty if there is no shape.
coco::Rle rasterised(const coco::Segmentation& shape, cv::Size image);

/// Removes the pixels of `hidden` from the shapes below. A polygon that loses a pixel becomes a
/// run-length mask, and its box the mask's bounding box. Objects without a shape do not change.
void remove_covered_pixels(Instances& objects, const coco::Rle& hidden,
                           const Visibility& visibility);

}  // namespace millrace
