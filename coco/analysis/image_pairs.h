// All detections and objects of an image, for analyses across categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

inline constexpr double kForeground = .5;  // minimum IoU with an object that is found
inline constexpr double kBackground = .1;  // maximum IoU with an unrelated object

/// The objects and counted detections of one image. Overlaps below kBackground may be 0.
struct ImagePairs {
  struct Found {
    std::uint32_t match;     // position in Matches::detections
    std::uint32_t category;  // position; 0 if categories are joined
  };
  struct Object {
    std::uint32_t annotation;  // position in Dataset::annotations
    std::uint32_t category;
    bool crowd;  // a crowd, or an object in an area that never counts
  };
  std::vector<Found> found;      // by falling score
  std::vector<Object> objects;   // by category, then in file order
  std::vector<double> overlaps;  // IoU, [found, objects]

  double overlap(std::size_t f, std::size_t o) const { return overlaps[f * objects.size() + o]; }
  bool same_category(std::size_t f, std::size_t o) const {
    return found[f].category == objects[o].category;
  }
};

/// Returns the object that a detection takes: the one with the largest IoU >= kForeground that is
/// neither a crowd nor taken. At equal IoU, prefers an object of the detection's category, and then
/// the last one, like pycocotools. Returns objects.size() if not found.
std::size_t best_free(const ImagePairs& pairs, std::size_t f, const std::vector<bool>& taken,
                      bool own_category_only);

/// Returns whether a detection has an IoU of at least kForeground with a crowd of its category.
bool in_crowd(const ImagePairs& pairs, std::size_t f);

/// Calls `body` for each image with detections or objects, on all threads of the caller's arena.
void for_each_image(const Plan& plan, const Detections& detections, const Matches& matches,
                    const std::function<void(const ImagePairs&)>& body);

}  // namespace millrace::coco
