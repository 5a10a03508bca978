// Stages that cut out a random part. For training only, since a sample does not store its offset.
#pragma once

#include <opencv2/core/types.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// detectron2's RandomCrop, with its four ways to draw the window's size.
struct RandomCrop {
  /// The meaning of `size`: the window's size or its range, in fractions of the image's sides or in
  /// pixels.
  enum class Type { relative, relative_range, absolute, absolute_range };
  friend std::vector<std::string> value_names(Type) {
    return {"relative", "relative_range", "absolute", "absolute_range"};
  }

  static constexpr std::string_view kName = "random_crop";
  static constexpr std::string_view kAfter = "decode";
  Type crop_type = Type::relative_range;
  Options::Reals size = {0.3, 0.3};
  bool keep_object = true;
  Visibility visibility;

  Sample operator()(Sample sample, Rng& rng) const;

  /// Draws the window's size in an image of size `image`; never larger than the image.
  cv::Size draw_size(cv::Size image, Rng& rng) const;
  /// Draws the window. With `keep_object` it contains the centre of a random object that is not a
  /// crowd, as in detectron2, and keeps part of an object; after ten failed draws it is the whole
  /// image.
  cv::Rect draw(const Sample& sample, Rng& rng) const;

  /// Throws std::invalid_argument for a `size` that is invalid for `crop_type`.
  void check() const;

  void describe(Options& o) {
    o.add("crop_type", crop_type, "meaning of size");
    o.add("size", size,
          "relative = fractions of width and height; relative_range = minimum fractions; absolute "
          "= width and height in pixels; absolute_range = minimum and maximum side in pixels",
          {.min = 0, .max = 65535});
    o.add("keep_object", keep_object, "keep part of at least one object, if the image has any");
    visibility.describe(o);
  }
};

/// Gives every image one size: cuts longer sides at a random place, pads shorter ones at the right
/// and bottom (detectron2's FixedSizeCrop, but with a separate random number for each axis).
struct FixedSizeCrop {
  static constexpr std::string_view kName = "fixed_size_crop";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t width = 1024, height = 1024;  // pixels
  std::int64_t pad_value = 128;
  Visibility visibility;

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws the window on an image of size `image`; it extends beyond a smaller image.
  cv::Rect draw(cv::Size image, Rng& rng) const;
  std::optional<cv::Size> largest_output(std::optional<cv::Size>) const {
    return cv::Size(static_cast<int>(width), static_cast<int>(height));
  }

  void describe(Options& o) {
    o.add("width", width, "width of the result", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("height", height, "height of the result", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("pad_value", pad_value, "padding level", {.min = 0, .max = 255});
    visibility.describe(o);
  }
};

/// Large-scale jitter (Ghiasi et al., Simple Copy-Paste, 2021): resizes the image to fit `scale`
/// times the target size at its aspect ratio (detectron2's ResizeScale), then cuts or pads it to
/// the target size.
struct LargeScaleJitter {
  static constexpr std::string_view kName = "large_scale_jitter";
  static constexpr std::string_view kAfter = "decode";
  double min_scale = 0.1, max_scale = 2.0;
  FixedSizeCrop target;

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws the size of the resized image.
  cv::Size draw(cv::Size image, Rng& rng) const;
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const {
    return target.largest_output(input);
  }
  void check() const { check_range(kName, "min_scale", min_scale, "max_scale", max_scale); }

  void describe(Options& o) {
    o.add("min_scale", min_scale, "minimum size of the image, in target sizes",
          {.min = 0.01, .max = 10});
    o.add("max_scale", max_scale, "maximum size of the image, in target sizes",
          {.min = 0.01, .max = 10});
    target.describe(o);
  }
};

}  // namespace millrace
