// What stands where in one picture of the sample, decided before anything is painted, so that the
// annotations are exact whatever the painting does. Pure; any thread may call it.
#pragma once

#include <opencv2/core.hpp>
#include <optional>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/coco/sample/sample_shapes.h"

namespace millrace::coco {

/// One object, a crowd of one kind, or a stick that only hides others.
struct Thing {
  std::optional<std::size_t> kind;  // into kinds(); nothing: a stick
  bool crowd = false;
  std::vector<Stamp> stamps;  // one, or a crowd's members in the order of painting
};

/// A picture's things from the farthest to the nearest, and which of them each pixel shows.
struct Scene {
  cv::Size size;
  std::vector<Thing> things;
  cv::Mat1b owner;  // per pixel: position in `things` plus one; 0: the ground

  /// 255 where the thing shows, else 0.
  cv::Mat1b visible(std::size_t thing) const { return owner == static_cast<double>(thing + 1); }
};

/// Every object left in the scene shows at least a third of itself.
Scene plan_scene(Rng& rng);

}  // namespace millrace::coco
