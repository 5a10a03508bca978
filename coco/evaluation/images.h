// The images to evaluate, and the detections of each image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// Returns for each image whether its id is in `ids`; true for all images if `ids` is empty.
std::vector<bool> chosen_images(const Dataset& truth, std::span<const std::int64_t> ids);

/// The detections of each image, in their original order.
struct DetectionsByImage {
  /// Throws Error for more than 4294967295 detections.
  DetectionsByImage(const Dataset& truth, const Detections& all);

  std::span<const std::uint32_t> of(std::size_t image) const {
    return std::span(indices).subspan(first[image], first[image + 1] - first[image]);
  }

  std::vector<std::uint32_t> first;    // [images + 1] offsets in `indices`
  std::vector<std::uint32_t> indices;  // positions of detections
  std::int64_t unknown = 0;            // detections of unknown images
};

}  // namespace millrace::coco
