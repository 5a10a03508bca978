// The AP that the detection limit costs even perfect detections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

struct LimitCost {
  std::uint32_t limit = 0;  // limit of AP: detections per image and class; LVIS: per image
  bool by_class = true;
  // Evaluated images, and images with more objects than the limit.
  std::size_t images = 0, images_over_limit = 0;
  double best_ap = 1;  // AP of perfect detections
};

/// Computes the cost for the boxes of the objects that `options` evaluates, without crowds.
/// `image_ids` restricts the evaluation; empty = all images. Throws like `evaluate`.
LimitCost limit_cost(const Dataset& truth, EvaluateOptions options,
                     std::span<const std::int64_t> image_ids = {});

/// Returns "7 of 9 images have more than 100 objects of a class: the best possible AP is 0.66";
/// empty if no image exceeds the limit.
std::string text(const LimitCost& cost);

}  // namespace millrace::coco
