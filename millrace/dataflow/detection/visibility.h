// Which objects stay when an augmentation cuts or hides a part of them.
#pragma once

#include "millrace/base/options.h"

namespace millrace {

/// An object stays while it has `min_area` pixels and `min_visible` of what it had (of its shape,
/// or of its box where it has none). What has nothing left, or is cut thinner than a pixel, goes in
/// any case.
struct Visibility {
  double min_area = 1;
  double min_visible = 0;

  bool holds(double before, double after) const {
    return after > 0 && after >= min_area && after >= min_visible * before;
  }

  void describe(Options& o) {
    o.add("min_area", min_area, "objects with less left of them go", {.min = 0, .unit = "pixels"});
    o.add("min_visible", min_visible, "objects with a smaller share left of them go",
          {.min = 0, .max = 1});
  }
};

}  // namespace millrace
