// Changes of an image and its objects together: what stages are made of.
#pragma once

#include <cstdint>
#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

enum class Direction { horizontal, vertical };
inline std::vector<std::string> value_names(Direction) { return {"horizontal", "vertical"}; }

/// Which pixel is taken for the new pixel i of n, nearest neighbour from m.
enum class Sampling {
  centres,  // the one at its centre, floor((i + 1/2) m / n): Pillow's NEAREST, so detectron2's
  corners,  // the one at its corner, floor(i m / n) in float: torch's `nearest`, so torchvision's
};

/// The mask's columns (horizontal) or rows in reverse order. Takes O(runs + columns).
coco::Rle mirrored(const coco::Rle& mask, Direction direction);

/// The mask sampled at width x height pixels, run by run, never as a bitmap.
coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height,
                  Sampling sampling = Sampling::centres);

/// The mask moved as by `warp`, sampled at the centres of the new pixels (nearest neighbour).
coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size);

/// An object stays while it has `min_area` pixels and `min_visible` of what it had (of its shape,
/// or of its box where it has none). An object without area, or cut thinner than a pixel, is
/// removed.
struct Visibility {
  double min_area = 1;
  double min_visible = 0;

  bool holds(double before, double after) const {
    return after > 0 && after >= min_area && after >= min_visible * before;
  }

  void describe(Options& o) {
    o.add("min_area", min_area, "objects with less left of them go", {.min = 0, .unit = "pixels"});
    o.add("min_visible", min_visible, "objects with a smaller share left of them go",
          {.min = 0, .max = 1});
  }
};

/// Throws std::invalid_argument naming the stage if `low` is above `high`.
void check_range(std::string_view stage, std::string_view low_name, double low,
                 std::string_view high_name, double high);

/// The image of a sample. Throws std::logic_error naming the `stage` if it is not decoded yet.
LazyImage& image_of(Sample& sample, std::string_view stage);

/// All pixels of the image. Throws as above.
cv::Mat& pixels(Sample& sample, std::string_view stage);

/// The size of an image of the same shape that just fits into width x height (detectron2's
/// ResizeScale, MMCV's imrescale); at least one pixel each way.
cv::Size fitted_size(cv::Size image, double width, double height);

/// Resizes bilinearly; masks in run lengths are sampled.
void resize(Sample& sample, cv::Size size, Sampling sampling = Sampling::centres,
            Resampling resampling = Resampling::opencv);

/// Leaves the part of the image under `window`; beyond the image it is filled with `fill` (0 ..
/// 255). A sample's scales know of no offset, so detections in a cropped image cannot be taken back
/// to the original: for training only.
void crop(Sample& sample, const cv::Rect& window, int fill, const Visibility& visibility);

/// Moves the image, bilinearly: its point p becomes matrix * (p, 1) of an image of `size` (empty:
/// its own size). Continuous coordinates, in which pixel i spans i .. i+1. Pixels from beyond the
/// image are filled with `fill`. For training only. Throws std::invalid_argument if the matrix is
/// not invertible.
void warp(Sample& sample, const cv::Matx23d& matrix, int fill, const Visibility& visibility,
          cv::Size size = {});

/// Copies the part of `image` that falls on `canvas` when its top left corner is put at `corner`.
void lay(const cv::Mat& image, cv::Point corner, cv::Mat& canvas);

}  // namespace millrace
