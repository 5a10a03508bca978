// What a training sees: how many images and objects there are, of which classes and sizes.
#pragma once

#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/source.h"

namespace millrace {

/// As text of several lines for a log. Sizes are COCO's, by the areas of boxes in the original
/// images; what repeats in an epoch counts once. Asks `about` each sample of the source, by all
/// threads of the caller's arena.
std::string data_summary(const Source<Sample>& source, const std::vector<std::string>& classes);

}  // namespace millrace
