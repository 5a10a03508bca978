// All detections and all objects of an image, for questions across categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

inline constexpr double kForeground = .5;  // least IoU with an object that is found
inline constexpr double kBackground = .1;  // most IoU with an unrelated object

/// The detections that count and the objects of one image. Overlaps below kBackground may be 0.
struct ImagePairs {
  struct Found {
    std::uint32_t match;     // in Matches::detections
    std::uint32_t category;  // position; 0 where categories are joined
  };
  struct Object {
    std::uint32_t annotation;  // in Dataset::annotations
    std::uint32_t category;
    bool crowd;  // or of an area that never counts
  };
  std::vector<Found> found;      // by falling score
  std::vector<Object> objects;   // by category, then as in the file
  std::vector<double> overlaps;  // (found, objects)

  double overlap(std::size_t f, std::size_t o) const { return overlaps[f * objects.size() + o]; }
  bool same_category(std::size_t f, std::size_t o) const {
    return found[f].category == objects[o].category;
  }
};

/// The object that a detection takes at kForeground: the one that it overlaps most of those that
/// are not a crowd and not taken; of equals one of its own category, and of these the last (as
/// pycocotools). objects.size() if there is none.
std::size_t best_free(const ImagePairs& pairs, std::size_t f, const std::vector<bool>& taken,
                      bool own_category_only);

/// Whether a crowd of its own category takes a detection in.
bool in_crowd(const ImagePairs& pairs, std::size_t f);

/// Calls `body` for each image with detections or objects, by all threads of the caller's arena.
void for_each_image(const Plan& plan, const Detections& detections, const Matches& matches,
                    const std::function<void(const ImagePairs&)>& body);

}  // namespace millrace::coco
