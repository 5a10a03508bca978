// Stages that mirror and warp an image with its objects.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Mirrors an image and its objects at random, left to right or top to bottom.
struct Flip {
  static constexpr std::string_view kName = "flip";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  Direction direction = Direction::horizontal;

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of flipping an image", {.min = 0, .max = 1})
        .follows("data.flip");
    o.add("direction", direction, "horizontal = left to right; vertical = top to bottom");
  }
};

/// Scales, rotates, shears and moves the image about its centre in one bilinear warp (MMDetection's
/// RandomAffine: translation * shear * rotation * scale). The result is a frame around that centre,
/// of width x height or as large as the image. The defaults change no image; `rotation = 15` alone
/// is a rotation. For training only.
struct Affine {
  static constexpr std::string_view kName = "affine";
  static constexpr std::string_view kAfter = "decode";
  double probability = 1;
  double rotation = 0;                  // degrees, to either side
  double min_scale = 1, max_scale = 1;  // factors
  double translation = 0;               // fraction of width and height, to either side
  double shear = 0;                     // degrees, to either side, of each axis
  std::int64_t fill = 114;
  std::int64_t width = 0, height = 0;  // pixels of the result; 0 = those of the image
  Visibility visibility;

  /// The drawn values: degrees, a factor, fractions of width and height.
  struct Draw {
    double rotation = 0, scale = 1, translate_x = 0, translate_y = 0, shear_x = 0, shear_y = 0;
  };

  Sample operator()(Sample sample, Rng& rng) const;
  Draw draw(Rng& rng) const;
  /// Returns the matrix from an image of size `image` to one of size `result`, in continuous
  /// coordinates. A positive rotation appears clockwise, since y points down.
  static cv::Matx23d matrix(const Draw& draw, cv::Size image, cv::Size result);
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const {
    return width > 0 ? cv::Size(static_cast<int>(width), static_cast<int>(height)) : input;
  }
  /// Throws std::invalid_argument for an empty range of scales, or if only one of width and height
  /// is set.
  void check() const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of warping an image", {.min = 0, .max = 1});
    o.add("rotation", rotation, "maximum rotation, either way",
          {.min = 0, .max = 180, .unit = "degrees"});
    o.add("min_scale", min_scale, "minimum scale", {.min = 0.01, .max = 100});
    o.add("max_scale", max_scale, "maximum scale", {.min = 0.01, .max = 100});
    o.add("translation", translation,
          "maximum shift, as a fraction of the result's width and height", {.min = 0, .max = 1});
    o.add("shear", shear, "maximum shear of each axis, either way",
          {.min = 0, .max = 40, .unit = "degrees"});
    o.add("fill", fill, "level of pixels outside the image", {.min = 0, .max = 255});
    o.add("width", width, "width of the result; 0 = width of the image",
          {.min = 0, .max = 8192, .unit = "pixels"});
    o.add("height", height, "height of the result; 0 = height of the image",
          {.min = 0, .max = 8192, .unit = "pixels"});
    visibility.describe(o);
  }
};

}  // namespace millrace
