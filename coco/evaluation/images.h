// Which images are evaluated, and which detections are of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// Whether each image is among the ids; all are for no ids.
std::vector<bool> chosen_images(const Dataset& truth, std::span<const std::int64_t> ids);

/// The detections of each image, in their order.
struct DetectionsByImage {
  /// Throws Error for more than 4294967295 detections.
  DetectionsByImage(const Dataset& truth, const Detections& all);

  std::span<const std::uint32_t> of(std::size_t image) const {
    return std::span(indices).subspan(first[image], first[image + 1] - first[image]);
  }

  std::vector<std::uint32_t> first;    // (images + 1) in `indices`
  std::vector<std::uint32_t> indices;  // positions of detections
  std::int64_t unknown = 0;            // detections of unknown images
};

}  // namespace millrace::coco
