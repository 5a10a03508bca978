// Stages that change colours by chance and leave objects as they are, and their arithmetic.
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

/// Colours changed by given amounts. Images are (H, W, 3) 8-bit RGB; each function gives a new one,
/// rounded to the nearest level and saturated. Luma is 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601),
/// as in torchvision, detectron2 and Pillow. Pure; any thread.
namespace photometry {

/// Every level times `factor` (torchvision's adjust_brightness).
cv::Mat brightness(const cv::Mat& image, double factor);
/// Away from the mean luma by `factor`; 0: all of that grey (torchvision's adjust_contrast).
cv::Mat contrast(const cv::Mat& image, double factor);
/// Away from each pixel's luma by `factor`; 0: a grey image (torchvision's adjust_saturation).
cv::Mat saturation(const cv::Mat& image, double factor);
/// Turns the hue by `turns` of the colour circle, in 256 steps (torchvision's adjust_hue).
cv::Mat hue(const cv::Mat& image, double turns);
/// 255 * (level / 255) ^ exponent (torchvision's adjust_gamma).
cv::Mat gamma(const cv::Mat& image, double exponent);
/// Adds a number of levels to each channel.
cv::Mat shift(const cv::Mat& image, const cv::Vec3d& levels);

}  // namespace photometry

/// Brightness, contrast, saturation, hue and gamma in random order (torchvision's ColorJitter).
struct ColorJitter {
  static constexpr std::string_view kName = "color_jitter";
  static constexpr std::string_view kAfter = "decode";
  double probability = 1;
  double brightness = 0.4, contrast = 0.4, saturation = 0.4;  // factors are 1 - x .. 1 + x
  double hue = 0.05;                                          // turns are -x .. x
  double gamma = 0;                                           // exponents are 1 - x .. 1 + x

  /// What was drawn. `order`: the five changes, numbered as listed, in the order of their work.
  struct Draw {
    double brightness = 1, contrast = 1, saturation = 1, hue = 0, gamma = 1;
    std::array<int, 5> order = {0, 1, 2, 3, 4};
  };

  Sample operator()(Sample sample, Rng& rng) const;
  Draw draw(Rng& rng) const;
  static cv::Mat apply(cv::Mat image, const Draw& draw);

  void describe(Options& o) {
    o.add("probability", probability, "chance to change an image", {.min = 0, .max = 1});
    o.add("brightness", brightness, "factors are 1 - this .. 1 + this", {.min = 0, .max = 1});
    o.add("contrast", contrast, "factors are 1 - this .. 1 + this", {.min = 0, .max = 1});
    o.add("saturation", saturation, "factors are 1 - this .. 1 + this", {.min = 0, .max = 1});
    o.add("hue", hue, "greatest turn of the colour circle", {.min = 0, .max = 0.5});
    o.add("gamma", gamma, "exponents are 1 - this .. 1 + this", {.min = 0, .max = 0.9});
  }
};

/// Moves hue, saturation and value by whole levels, each by an even chance (YOLOX's augment_hsv).
struct HsvShift {
  static constexpr std::string_view kName = "hsv_shift";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t hue = 10;                     // degrees
  std::int64_t saturation = 30, value = 30;  // levels

  Sample operator()(Sample sample, Rng& rng) const;
  /// Steps of two degrees, and levels.
  std::array<int, 3> draw(Rng& rng) const;
  static cv::Mat apply(const cv::Mat& image, const std::array<int, 3>& steps);

  void describe(Options& o) {
    o.add("hue", hue, "greatest turn of the colour circle, either way",
          {.min = 0, .max = 180, .unit = "degrees"});
    o.add("saturation", saturation, "moves by up to this, either way",
          {.min = 0, .max = 255, .unit = "levels"});
    o.add("value", value, "moves by up to this, either way",
          {.min = 0, .max = 255, .unit = "levels"});
  }
};

/// Makes an image grey (torchvision's RandomGrayscale); it keeps three channels.
struct Grayscale {
  static constexpr std::string_view kName = "grayscale";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.1;

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to make an image grey", {.min = 0, .max = 1});
  }
};

/// Adds one random colour along the principal components of ImageNet's colours to every pixel
/// (Krizhevsky et al. 2012; eigenvalues of levels 0 .. 255 as in tensorpack's Lighting).
struct Lighting {
  static constexpr std::string_view kName = "lighting";
  static constexpr std::string_view kAfter = "decode";
  double deviation = 0.1;  // of the three random weights

  Sample operator()(Sample sample, Rng& rng) const;
  /// Levels to add to red, green and blue.
  cv::Vec3d draw(Rng& rng) const;

  void describe(Options& o) {
    o.add("deviation", deviation, "standard deviation of the components' weights",
          {.min = 0, .max = 10});
  }
};

/// A Gaussian blur of random width (torchvision's GaussianBlur; the kernel reaches 3 deviations
/// either way, the border is reflected).
struct Blur {
  static constexpr std::string_view kName = "blur";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double min_sigma = 0.1, max_sigma = 2.0;  // pixels

  Sample operator()(Sample sample, Rng& rng) const;
  void check() const { check_range(kName, "min_sigma", min_sigma, "max_sigma", max_sigma); }

  void describe(Options& o) {
    o.add("probability", probability, "chance to blur an image", {.min = 0, .max = 1});
    o.add("min_sigma", min_sigma, "least standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
    o.add("max_sigma", max_sigma, "greatest standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
  }
};

/// Adds normal noise to every level, of one random strength per image.
struct Noise {
  static constexpr std::string_view kName = "noise";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double max_sigma = 10;  // levels

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to change an image", {.min = 0, .max = 1});
    o.add("max_sigma", max_sigma, "greatest standard deviation; each image has one from 0 on",
          {.min = 0, .max = 255, .unit = "levels"});
  }
};

}  // namespace millrace
