#pragma once

#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Mirrors a sample by chance, left to right or top to bottom: pixels, boxes, polygons and run
/// lengths together.
struct Flip {
  static constexpr std::string_view kName = "flip";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  Direction direction = Direction::horizontal;

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to mirror an image", {.min = 0, .max = 1});
    o.add("direction", direction, "left to right (horizontal) or top to bottom");
  }
};

}  // namespace millrace
