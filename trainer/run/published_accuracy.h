// Warnings about settings for which published trainings lost accuracy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Returns warnings, as whole sentences, for a training with `images_per_step` images per step over
/// all ranks. They are based on the figures of AWS's Mask R-CNN (R50-FPN on COCO, SGD, 32 to 128
/// images per step).
std::vector<std::string> published_warnings(const Recipe& recipe, std::int64_t images_per_step);

}  // namespace millrace
