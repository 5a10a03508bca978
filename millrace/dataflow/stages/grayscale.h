#pragma once

#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Makes an image grey by chance (torchvision's RandomGrayscale); it keeps three channels.
struct Grayscale {
  static constexpr std::string_view kName = "grayscale";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.1;

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to make an image grey", {.min = 0, .max = 1});
  }
};

}  // namespace millrace
