// Points, boxes and shapes whose image is mirrored, resized, cropped, warped or covered. Continuous
// coordinates: pixel i spans i .. i+1. Pure; any thread.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <span>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// The part of a polygon inside 0 .. width, 0 .. height (Sutherland and Hodgman 1974). Parts are
/// joined by bridges along the border, which have no pixels. Empty if no area is inside; the same
/// numbers if all of it is.
coco::Polygon clipped(const coco::Polygon& polygon, cv::Size image);

/// The part of a box inside the image.
Box clipped(const Box& box, cv::Size image);

/// The smallest box around polygons. REQUIRES: at least one point.
Box bounds(std::span<const coco::Polygon> polygons);

/// The point at matrix * (x, y, 1).
cv::Vec2d moved(double x, double y, const cv::Matx23d& matrix);
/// The box around the moved corners.
Box moved(const Box& box, const cv::Matx23d& matrix);

/// Throws std::invalid_argument if the matrix is not invertible.
cv::Matx23d inverse(const cv::Matx23d& matrix);

/// Mirrors objects left to right (horizontal) or top to bottom about an image `side` pixels long
/// that way: x becomes side - x, and run lengths exchange columns.
void mirror(Instances& objects, std::int32_t side, Direction direction);

/// Scales objects to an image of `width` x `height`; run lengths are sampled.
void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y, Sampling sampling = Sampling::centres);

/// Moves objects into the part of the image under `window`, which may reach beyond it. Run lengths
/// are cut exactly, polygons at the window's border. An object that is cut gets the box around what
/// is left of its shape, or its clipped box if it has none; others keep theirs, moved.
void crop(Instances& objects, const cv::Rect& window, const Visibility& visibility);

/// Moves objects into an image of `size`, the point p of the old one to matrix * (p, 1). Boxes
/// become those around what is inside of the shape, or around the moved corners if there is none.
/// REQUIRES: an invertible matrix.
void warp(Instances& objects, const cv::Matx23d& matrix, cv::Size size,
          const Visibility& visibility);

/// The mask of a shape in an image of size `image`; empty if there is no shape.
coco::Rle rasterised(const coco::Segmentation& shape, cv::Size image);

/// Takes the pixels of `hidden` from the shapes under it. A polygon that loses a pixel becomes run
/// lengths with the box around them. Objects without a shape stay.
void cover(Instances& objects, const coco::Rle& hidden, const Visibility& visibility);

}  // namespace millrace
