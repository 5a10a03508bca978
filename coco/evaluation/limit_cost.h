// What the limit of detections takes from perfect answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

struct LimitCost {
  std::uint32_t limit = 0;  // of AP: detections of an image and class; LVIS: of an image
  bool by_class = true;
  std::size_t images = 0, beyond = 0;  // evaluated images, and those with more objects than that
  double best_ap = 1;                  // of perfect answers
};

/// For the objects that `options` evaluates, crowds left out, by their boxes. `image_ids` restricts
/// the evaluation; empty: all images. Throws as `evaluate`.
LimitCost limit_cost(const Dataset& truth, EvaluateOptions options,
                     std::span<const std::int64_t> image_ids = {});

/// "7 of 9 images have more than 100 objects of a class: the best possible AP is 0.66"; empty if no
/// image has.
std::string text(const LimitCost& cost);

}  // namespace millrace::coco
