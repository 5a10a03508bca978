#pragma once

#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Blurs an image by chance with a Gaussian of random width (torchvision's GaussianBlur; the kernel
/// is as wide as 3 deviations either way, the border is reflected).
struct Blur {
  static constexpr std::string_view kName = "blur";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  double min_sigma = 0.1, max_sigma = 2.0;  // pixels

  Sample operator()(Sample sample, Rng& rng) const;

  /// Throws std::invalid_argument where min_sigma is above max_sigma.
  void check() const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to blur an image", {.min = 0, .max = 1});
    o.add("min_sigma", min_sigma, "least standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
    o.add("max_sigma", max_sigma, "greatest standard deviation",
          {.min = 0.01, .max = 50, .unit = "pixels"});
  }
};

}  // namespace millrace
