// What happens to boxes and shapes when their image is mirrored, resized, cropped, warped or
// covered.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Mirrors objects left to right (horizontal) or top to bottom about an image `side` pixels long
/// that way: x becomes side - x, and run lengths exchange columns.
void mirror(Instances& objects, std::int32_t side, Direction direction);

/// Takes objects into an image `width` x `height` whose pixels are `scale_x`, `scale_y` times as
/// many; run lengths are sampled.
void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y, Sampling sampling = Sampling::centres);

/// Takes objects into the part of the image under `window`, which may reach beyond it. Whole
/// pixels: run lengths are cut exactly, polygons at the window's border. An object that is cut gets
/// the box around what is left of its shape, or its clipped box where it has none; others keep
/// theirs, moved.
void crop(Instances& objects, const cv::Rect& window, const Visibility& visibility);

/// Takes objects into an image of `size` where the point p of the old one lies at matrix * (p, 1);
/// continuous coordinates, in which pixel i spans i .. i+1. Boxes become those around what is
/// inside of the shape, or around the moved corners where there is none. REQUIRES: an invertible
/// matrix.
void warp(Instances& objects, const cv::Matx23d& matrix, cv::Size size,
          const Visibility& visibility);

/// The mask of a shape in an image of size `image`; empty where there is no shape.
coco::Rle rasterised(const coco::Segmentation& shape, cv::Size image);

/// Takes the pixels of `hidden` from the shapes under it. Polygons become run lengths only where
/// they really lose a pixel, and then the box becomes that around the rest. Objects without a shape
/// stay.
void cover(Instances& objects, const coco::Rle& hidden, const Visibility& visibility);

}  // namespace millrace
