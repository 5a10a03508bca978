// Where published trainings are known to have lost accuracy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Warnings, whole sentences, for a training whose steps take `images_per_step` over all ranks.
/// The figures are those of AWS's Mask R-CNN (R50-FPN on COCO, SGD, 32 to 128 images a step).
std::vector<std::string> published_warnings(const Recipe& recipe, std::int64_t images_per_step);

}  // namespace millrace
