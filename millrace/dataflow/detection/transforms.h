// What happens to a whole sample, pixels and objects, when it is resized, cropped or warped: the
// pure half of the stages, whose other half draws the parameters.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <string_view>

#include "millrace/dataflow/detection/mask_motion.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/visibility.h"

namespace millrace {

/// The image of a sample. Throws std::logic_error, naming the `stage` that wants it, where nothing
/// has decoded it yet.
LazyImage& image_of(Sample& sample, std::string_view stage);

/// All pixels of the image. Throws as above.
cv::Mat& pixels(Sample& sample, std::string_view stage);

/// The size of an image of the same shape that just fits into width x height (detectron2's
/// ResizeScale, MMCV's imrescale); at least one pixel each way.
cv::Size fitted_size(cv::Size image, double width, double height);

/// Resizes bilinearly; masks in run lengths are sampled.
void resize(Sample& sample, cv::Size size, Sampling sampling = Sampling::centres);

/// Leaves what `window` shows of the image; what lies beyond the image is filled with `fill` (0 ..
/// 255). A sample's scales know of no offset, so detections in a cropped image cannot be taken back
/// to the original: for training only.
void crop(Sample& sample, const cv::Rect& window, int fill, const Visibility& visibility);

/// Moves the image, bilinearly, so that its point p comes to lie at matrix * (p, 1); the size
/// stays. Continuous coordinates, in which pixel i spans i .. i+1. What comes from beyond the image
/// is filled with `fill`. For training only, as `crop`. Throws std::invalid_argument for a matrix
/// without an inverse.
void warp(Sample& sample, const cv::Matx23d& matrix, int fill, const Visibility& visibility);

/// Copies the part of `image` that falls on `canvas` when its top left corner is put at `corner`.
void lay(const cv::Mat& image, cv::Point corner, cv::Mat& canvas);

}  // namespace millrace
