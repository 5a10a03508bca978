// One picture of the sample: all objects are placed before anything is painted, so that the
// annotations are exact whatever the painting does. Pure; any thread may call it.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/coco/sample/sample_shapes.h"

namespace millrace::coco {

/// One object, a crowd of one kind, or a stick that only hides others.
struct Thing {
  std::optional<std::size_t> kind;  // into kinds(); nullopt: a stick
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

/// The picture of a scene, blue green red: surfaces, light, shadows, lens and film.
cv::Mat3b paint(const Scene& scene, Rng& rng);

/// The things of a scene as COCO annotations: JSON objects with commas between them, "" for an
/// empty scene. Polygons where they are exact enough, one per part; run lengths for holes and
/// crowds. Area and box are those of the segmentation as written. Ids are 100 x image_id and up.
std::string annotate(const Scene& scene, std::int64_t image_id);

}  // namespace millrace::coco
