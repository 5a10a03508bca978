// One picture of the sample data set. All objects are placed before painting, so that the
// annotations are exact. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/coco/sample/sample_shapes.h"

namespace millrace::coco {

/// An object, a crowd of objects of one kind, or a stick that only hides others.
struct Thing {
  std::optional<std::size_t> kind;  // position in kinds(); nullopt = a stick
  bool crowd = false;
  std::vector<Stamp> stamps;  // one, or the members of a crowd in painting order
};

/// The things of a picture from back to front, and the thing visible at each pixel.
struct Scene {
  cv::Size size;
  std::vector<Thing> things;
  cv::Mat1b owner;  // per pixel: position in `things` plus one; 0 = ground

  /// Returns a mask with 255 where the thing is visible, otherwise 0.
  cv::Mat1b visible(std::size_t thing) const { return owner == static_cast<double>(thing + 1); }
};

/// Plans a scene in which at least a third of every object is visible.
Scene plan_scene(Rng& rng);

/// Paints a scene as a BGR picture, with surfaces, light, shadows, lens and film effects.
cv::Mat3b paint(const Scene& scene, Rng& rng);

/// Returns the things of a scene as COCO annotations: comma-separated JSON objects, "" for an empty
/// scene. Polygons if they are exact enough, one per part; run lengths for holes and crowds. Area
/// and box are those of the segmentation as written. Ids begin at 100 x image_id.
std::string annotate(const Scene& scene, std::int64_t image_id);

}  // namespace millrace::coco
