// Stages that change colours at random without changing objects, and their arithmetic.
#pragma once

#include <array>
#include <opencv2/core/mat.hpp>
#include <opencv2/core/matx.hpp>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Colour changes by given amounts. Images are (H, W, 3) 8-bit RGB; each function returns a new
/// one, rounded to the nearest level and saturated. Luma is 0.299 R + 0.587 G + 0.114 B (ITU-R
/// BT.601), as in torchvision, detectron2 and Pillow. Pure and thread-safe.
namespace photometry {

/// Multiplies every level by `factor` (torchvision's adjust_brightness).
cv::Mat brightness(const cv::Mat& image, double factor);
/// Scales the distance from the mean luma by `factor`; 0 = uniform grey (torchvision's
/// adjust_contrast).
cv::Mat contrast(const cv::Mat& image, double factor);
/// Scales the distance from each pixel's luma by `factor`; 0 = grey image (torchvision's
/// adjust_saturation).
cv::Mat saturation(const cv::Mat& image, double factor);
/// Rotates the hue by `turns` of the colour circle, in 256 steps (torchvision's adjust_hue).
cv::Mat hue(const cv::Mat& image, double turns);
/// Computes 255 * (level / 255) ^ exponent (torchvision's adjust_gamma).
cv::Mat gamma(const cv::Mat& image, double exponent);
/// Adds `levels` to each channel.
cv::Mat shift(const cv::Mat& image, const cv::Vec3d& levels);

}  // namespace photometry

/// Changes brightness, contrast, saturation, hue and gamma in random order (torchvision's
/// ColorJitter).
struct ColorJitter {
  static constexpr std::string_view kName = "color_jitter";
  static constexpr std::string_view kAfter = "decode";
  double probability = 1;
  double brightness = 0.4, contrast = 0.4, saturation = 0.4;  // factors are 1 - x .. 1 + x
  double hue = 0.05;                                          // turns of the colour circle are -x
                                                              // .. x
  double gamma = 0;                                           // exponents are 1 - x .. 1 + x

  /// The drawn values. `order` holds the five changes, numbered as listed, in the order in which
  /// they are applied.
  struct Draw {
    double brightness = 1, contrast = 1, saturation = 1, hue = 0, gamma = 1;
    std::array<int, 5> order = {0, 1, 2, 3, 4};
  };

  Sample operator()(Sample sample, Rng& rng) const;
  Draw draw(Rng& rng) const;
  static cv::Mat apply(cv::Mat image, const Draw& draw);

  void describe(Options& o) {
    o.add("probability", probability, "probability of changing an image", {.min = 0, .max = 1});
    o.add("brightness", brightness, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("contrast", contrast, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("saturation", saturation, "factor range: 1 - value to 1 + value", {.min = 0, .max = 1});
    o.add("hue", hue, "maximum rotation of the hue, in full turns, either way",
          {.min = 0, .max = 0.5});
    o.add("gamma", gamma, "exponent range: 1 - value to 1 + value", {.min = 0, .max = 0.9});
  }
};

/// Shifts hue, saturation and value by whole levels, each with probability 1/2 (YOLOX's
/// augment_hsv).
struct HsvShift {
  static constexpr std::string_view kName = "hsv_shift";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t hue = 10;                     // degrees
  std::int64_t saturation = 30, value = 30;  // levels

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws shifts: hue in steps of two degrees, saturation and value in levels.
  std::array<int, 3> draw(Rng& rng) const;
  static cv::Mat apply(const cv::Mat& image, const std::array<int, 3>& steps);

  void describe(Options& o) {
    o.add("hue", hue, "maximum rotation of the hue, either way",
          {.min = 0, .max = 180, .unit = "degrees"});
    o.add("saturation", saturation, "maximum shift, either way",
          {.min = 0, .max = 255, .unit = "levels"});
    o.add("value", value, "maximum shift, either way", {.min = 0, .max = 255, .unit = "levels"});
  }
};

/// Makes an image grey with three channels (torchvision's RandomGrayscale).
struct Grayscale {
  static constexpr std::string_view kName = "grayscale";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.1;

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of making an image grey", {.min = 0, .max = 1});
  }
};

/// Adds one random colour along the principal components of ImageNet's colours to every pixel
/// (Krizhevsky et al. 2012; eigenvalues for levels 0 .. 255 as in tensorpack's Lighting).
struct Lighting {
  static constexpr std::string_view kName = "lighting";
  static constexpr std::string_view kAfter = "decode";
  double deviation = 0.1;  // standard deviation of the three random weights

  Sample operator()(Sample sample, Rng& rng) const;
  /// Draws the levels to add to red, green and blue.
  cv::Vec3d draw(Rng& rng) const;

  void describe(Options& o) {
    o.add("deviation", deviation, "standard deviation of the components' weights",
          {.min = 0, .max = 10});
  }
};

/// Applies a Gaussian blur of random width (torchvision's GaussianBlur; the kernel extends 3
/// deviations to each side, the border is reflected).
struct Blur {
  static constexpr std::string_view kName = "blur";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double min_sigma = 0.1, max_sigma = 2.0;  // pixels

  Sample operator()(Sample sample, Rng& rng) const;
  void check() const { check_range(kName, "min_sigma", min_sigma, "max_sigma", max_sigma); }

  void describe(Options& o) {
    o.add("probability", probability, "probability of blurring an image", {.min = 0, .max = 1});
    o.add("min_sigma", min_sigma, "minimum standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
    o.add("max_sigma", max_sigma, "maximum standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
  }
};

/// Adds normal noise to every level, with one random strength per image.
struct Noise {
  static constexpr std::string_view kName = "noise";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double max_sigma = 10;  // levels

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "probability of changing an image", {.min = 0, .max = 1});
    o.add("max_sigma", max_sigma, "maximum standard deviation; drawn per image from 0 to this",
          {.min = 0, .max = 255, .unit = "levels"});
  }
};

}  // namespace millrace
