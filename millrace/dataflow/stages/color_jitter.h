#pragma once

#include <array>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Changes brightness, contrast, saturation, hue and gamma by random factors and in random order
/// (torchvision's ColorJitter; see photometry.h for the arithmetic). Objects stay as they are.
struct ColorJitter {
  static constexpr std::string_view kName = "color_jitter";
  static constexpr std::string_view kAfter = "decode";
  double probability = 1;
  double brightness = 0.4, contrast = 0.4, saturation = 0.4;  // factors are 1 - x .. 1 + x
  double hue = 0.05;                                          // turns are -x .. x
  double gamma = 0;                                           // exponents are 1 - x .. 1 + x

  /// What was drawn; `order` says which of the five, as listed, comes when.
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

}  // namespace millrace
