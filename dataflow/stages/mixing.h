// Stages that combine several images; the further samples are drawn at random from the whole
// source.
#pragma once

#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Places four images around a random centre on a canvas of 2 width x 2 height pixels (YOLOv4;
/// MMDetection's Mosaic). Each is resized to fit width x height at its aspect ratio and touches the
/// centre with a corner; parts beyond the canvas are cut off. The result has the first sample's id,
/// path and scales, so it is for training only.
struct Mosaic {
  static constexpr std::string_view kName = "mosaic";
  static constexpr std::string_view kAfter = "decode";
  double probability = 1;
  std::int64_t width = 640, height = 640;     // pixels
  double min_center = 0.5, max_center = 1.5;  // fractions of width and height
  std::int64_t pad_value = 114;
  Visibility visibility;

  /// Returns 3 or 0.
  std::size_t partners(const Sample& sample, Rng& rng) const;
  Sample operator()(Sample sample, std::vector<Sample> others, Rng& rng) const;

  /// Draws the centre on the canvas, pixels.
  cv::Point draw(Rng& rng) const;
  /// Joins the samples: top left, top right, bottom left, bottom right. REQUIRES: four, with
  /// pixels.
  Sample join(std::vector<Sample> samples, cv::Point centre) const;
  std::optional<cv::Size> largest_output(std::optional<cv::Size>) const {
    return cv::Size(static_cast<int>(2 * width), static_cast<int>(2 * height));
  }
  void check() const { check_range(kName, "min_center", min_center, "max_center", max_center); }

  void describe(Options& o) {
    o.add("probability", probability, "probability of joining four images", {.min = 0, .max = 1});
    o.add("width", width,
          "width of the frame into which each image is fitted; the result is twice as wide",
          {.min = 1, .max = 8192, .unit = "pixels"});
    o.add("height", height,
          "height of the frame into which each image is fitted; the result is twice as high",
          {.min = 1, .max = 8192, .unit = "pixels"});
    o.add("min_center", min_center, "minimum position of the centre, in frames",
          {.min = 0, .max = 2});
    o.add("max_center", max_center, "maximum position of the centre, in frames",
          {.min = 0, .max = 2});
    o.add("pad_value", pad_value, "level of pixels outside the images", {.min = 0, .max = 255});
    visibility.describe(o);
  }
};

/// Simple Copy-Paste (Ghiasi et al. 2021): pastes some objects of another image, cut out along
/// their masks, onto this one. The other image is cut or padded to the size of this one. Each of
/// its objects with a shape that is not a crowd is chosen with probability 1/2, and at least one.
/// Covered objects lose the covered pixels. There is no blending, which made no difference in the
/// paper.
struct CopyPaste {
  static constexpr std::string_view kName = "copy_paste";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  Visibility visibility;

  /// Returns 1 or 0.
  std::size_t partners(const Sample& sample, Rng& rng) const;
  Sample operator()(Sample sample, std::vector<Sample> others, Rng& rng) const;

  /// Draws the objects of `other` that are pasted, one flag per object.
  std::vector<bool> draw(const Instances& other, Rng& rng) const;
  /// Pastes the `chosen` objects that have a pixel. REQUIRES: images of one size.
  Sample paste(Sample sample, Sample other, const std::vector<bool>& chosen) const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of pasting objects into an image",
          {.min = 0, .max = 1});
    visibility.describe(o);
  }
};

/// Averages this image and another one, and keeps the objects of both (mixup for detection as in
/// YOLOX, Ge et al. 2021). The other image is resized to fit a random multiple of this one's size,
/// mirrored with probability 1/2, and cut at a random place, or padded with black, to this one's
/// size. The result has the first sample's id, path and scales, so it is for training only.
struct MixUp {
  static constexpr std::string_view kName = "mixup";
  static constexpr std::string_view kAfter = "decode";
  static constexpr std::string_view kPartnersAfter = "decode";
  double probability = 1;
  double min_scale = 0.5, max_scale = 1.5;
  std::int64_t pad_value = 114;
  Visibility visibility;

  /// Returns 1 or 0; 0 for an image without objects.
  std::size_t partners(const Sample& sample, Rng& rng) const;
  Sample operator()(Sample sample, std::vector<Sample> others, Rng& rng) const;
  void check() const { check_range(kName, "min_scale", min_scale, "max_scale", max_scale); }

  void describe(Options& o) {
    o.add("probability", probability, "probability of mixing in another image",
          {.min = 0, .max = 1});
    o.add("min_scale", min_scale, "minimum size of the other image, relative to this one",
          {.min = 0.01, .max = 10});
    o.add("max_scale", max_scale, "maximum size of the other image, relative to this one",
          {.min = 0.01, .max = 10});
    o.add("pad_value", pad_value, "padding level of the other image", {.min = 0, .max = 255});
    visibility.describe(o);
  }
};

}  // namespace millrace
