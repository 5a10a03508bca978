#pragma once

#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Adds normal noise to every level of an image by chance, of one random strength an image.
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
