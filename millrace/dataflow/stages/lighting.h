#pragma once

#include <opencv2/core/matx.hpp>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Adds a random colour along the principal components of ImageNet's colours, the same to every
/// pixel (Krizhevsky et al. 2012; eigenvalues of levels 0 .. 255 and eigenvectors as in
/// tensorpack's Lighting).
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

}  // namespace millrace
