// Changes of an image together with its objects: the building blocks of stages.
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

/// The pixel sampled for the new pixel i of n, nearest neighbour from m old pixels.
enum class Sampling {
  centres,  // at the centre, floor((i + 1/2) m / n): Pillow's NEAREST, as in detectron2
  corners,  // at the corner, floor(i m / n) in float: torch's `nearest`, as in torchvision
};

/// Returns the mask with columns (horizontal) or rows reversed. Takes O(runs + columns).
coco::Rle mirrored(const coco::Rle& mask, Direction direction);

/// Returns the mask sampled at width x height pixels, run by run, without a bitmap.
coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height,
                  Sampling sampling = Sampling::centres);

/// Returns the mask moved as by `warp`, sampled at the centres of the new pixels (nearest
/// neighbour).
coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size);

/// The condition under which an object is kept: it has `min_area` pixels and the fraction
/// `min_visible` of its previous area (of its shape, or of its box if it has none). An object
/// without area, or cut thinner than a pixel, is removed.
struct Visibility {
  double min_area = 1;
  double min_visible = 0;

  bool holds(double before, double after) const {
    return after > 0 && after >= min_area && after >= min_visible * before;
  }

  void describe(Options& o) {
    o.add("min_area", min_area, "drop objects of which less area is left",
          {.min = 0, .unit = "pixels"});
    o.add("min_visible", min_visible, "drop objects of which a smaller fraction is left",
          {.min = 0, .max = 1});
  }
};

/// Throws std::invalid_argument with the stage if `low` is above `high`.
void check_range(std::string_view stage, std::string_view low_name, double low,
                 std::string_view high_name, double high);

/// Returns the image of a sample. Throws std::logic_error with the `stage` if it is not decoded
/// yet.
LazyImage& image_of(Sample& sample, std::string_view stage);

/// Returns all pixels of the image. Throws as image_of.
cv::Mat& pixels(Sample& sample, std::string_view stage);

/// Returns the largest size with the image's aspect ratio that fits into width x height
/// (detectron2's ResizeScale, MMCV's imrescale); each side is at least one pixel.
cv::Size fitted_size(cv::Size image, double width, double height);

/// Resizes bilinearly; run-length masks are sampled.
void resize(Sample& sample, cv::Size size, Sampling sampling = Sampling::centres,
            Resampling resampling = Resampling::opencv);

/// Keeps the part of the image under `window`; pixels beyond the image are set to `fill` (0 ..
/// 255). For training only: a sample's scales store no offset, so detections in a cropped image
/// cannot be mapped back to the original.
void crop(Sample& sample, const cv::Rect& window, int fill, const Visibility& visibility);

/// Warps the image bilinearly: point p moves to matrix * (p, 1) in an image of `size` (empty = its
/// own size). Continuous coordinates, in which pixel i spans i .. i+1. Pixels from beyond the image
/// are set to `fill`. For training only. Throws std::invalid_argument if the matrix is not
/// invertible.
void warp(Sample& sample, const cv::Matx23d& matrix, int fill, const Visibility& visibility,
          cv::Size size = {});

/// Copies the part of `image` that overlaps `canvas` when its top left corner is at `corner`.
void copy_overlap(const cv::Mat& image, cv::Point corner, cv::Mat& canvas);

}  // namespace millrace
