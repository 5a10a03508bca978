#pragma once

#include <cstdint>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Keeps the samples that are useful for training. Needs no pixels, so it may precede `decode`;
/// after a crop it counts the remaining objects.
struct Filter {
  static constexpr std::string_view kName = "filter";
  std::int64_t min_objects = 0;  // crowds are not counted
  double min_object_side = 0;    // pixels; objects with a shorter box side are not counted
  std::int64_t min_side = 0;     // shorter side of the image, pixels

  bool operator()(const Sample& sample) const;

  void describe(Options& o) {
    o.add("min_objects", min_objects, "drop images with fewer objects; crowds do not count",
          {.min = 0});
    o.add("min_object_side", min_object_side, "do not count objects whose box has a shorter side",
          {.min = 0, .unit = "pixels"});
    o.add("min_side", min_side, "drop images with a shorter side", {.min = 0, .unit = "pixels"});
  }
};

}  // namespace millrace
