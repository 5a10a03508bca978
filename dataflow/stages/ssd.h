// SSD's augmentations (Liu et al. 2016), as in torchvision and RT-DETR. For training only, since a
// sample does not store its offset.
#pragma once

#include <array>
#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Changes brightness, contrast, saturation, hue and the order of the channels, each at random
/// (torchvision's RandomPhotometricDistort).
struct PhotometricDistort {
  static constexpr std::string_view kName = "photometric_distort";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double brightness = 0.125, contrast = 0.5, saturation = 0.5;  // factors are 1 - x .. 1 + x
  double hue = 0.05;                                            // turns, -x .. x

  struct Draw {
    double brightness = 1, contrast = 1, saturation = 1, hue = 0;
    bool contrast_last = false;  // contrast is applied after saturation and hue
    std::array<int, 3> channels = {0, 1, 2};
  };

  Sample operator()(Sample sample, Rng& rng) const;
  Draw draw(Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of each change", {.min = 0, .max = 1});
    o.add("brightness", brightness, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("contrast", contrast, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("saturation", saturation, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("hue", hue, "maximum rotation of the hue, in full turns, either way",
          {.min = 0, .max = 0.5});
  }
};

/// Places the image at random on a larger canvas (torchvision's RandomZoomOut).
struct ZoomOut {
  static constexpr std::string_view kName = "zoom_out";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double min_scale = 1, max_scale = 4;
  std::int64_t fill = 0;

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws the canvas as a window on an image of size `image`.
  cv::Rect draw(cv::Size image, Rng& rng) const;
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const;
  void check() const { check_range(kName, "min_scale", min_scale, "max_scale", max_scale); }

  void describe(Options& o) {
    o.add("probability", probability, "probability of enlarging the canvas", {.min = 0, .max = 1});
    o.add("min_scale", min_scale, "minimum side of the canvas, relative to the image's",
          {.min = 1, .max = 16});
    o.add("max_scale", max_scale, "maximum side of the canvas, relative to the image's",
          {.min = 1, .max = 16});
    o.add("fill", fill, "level of pixels outside the image", {.min = 0, .max = 255});
  }
};

/// Cuts out a random window whose IoU with an object is at least a value drawn for each image, and
/// keeps the objects whose centres it contains (torchvision's RandomIoUCrop).
struct IouCrop {
  static constexpr std::string_view kName = "iou_crop";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.8;
  double min_scale = 0.3, max_scale = 1;
  double min_ratio = 0.5, max_ratio = 2;
  Options::Reals min_iou = {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
  std::int64_t trials = 40;
  Visibility visibility;

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws the window; the whole image if an IoU of 1 is drawn or no draw is suitable.
  cv::Rect draw(const Sample& sample, Rng& rng) const;
  void check() const {
    check_range(kName, "min_scale", min_scale, "max_scale", max_scale);
    check_range(kName, "min_ratio", min_ratio, "max_ratio", max_ratio);
  }

  void describe(Options& o) {
    o.add("probability", probability, "probability of cropping", {.min = 0, .max = 1});
    o.add("min_scale", min_scale, "minimum side of the window, relative to the image's",
          {.min = 0.01, .max = 1});
    o.add("max_scale", max_scale, "maximum side of the window, relative to the image's",
          {.min = 0.01, .max = 1});
    o.add("min_ratio", min_ratio, "minimum width / height of the window",
          {.min = 0.01, .max = 100});
    o.add("max_ratio", max_ratio, "maximum width / height of the window",
          {.min = 0.01, .max = 100});
    o.add(
        "min_iou", min_iou,
        "choices for the minimum IoU of the window with any object; 1 = leave the image unchanged",
        {.min = 0, .max = 1, .least = 1});
    o.add("trials", trials, "windows tried before another min_iou is drawn",
          {.min = 1, .max = 1000});
    visibility.describe(o);
  }
};

}  // namespace millrace
