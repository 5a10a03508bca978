#pragma once

#include <string_view>

#include "base/random.h"
#include "dataflow/data_options.h"
#include "dataflow/sample.h"

namespace millrace {

/// Mirrors a sample left to right by chance: pixels, boxes, polygons and run lengths together.
struct FlipHorizontally {
  static constexpr std::string_view kName = "flip";
  double probability = 0.5;

  static FlipHorizontally from(const DataOptions& data) { return {.probability = data.flip}; }

  Sample operator()(Sample sample, Rng& rng) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to mirror an image", {.min = 0, .max = 1});
  }
};

}  // namespace millrace
