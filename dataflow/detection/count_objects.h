// The number of objects in a source, without reading pixels. By all threads of the caller's arena.
#pragma once

#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

ObjectCounts count_objects(const Source<Sample>& source);

/// How many images and objects there are, of which classes and sizes: text of several lines for a
/// log. Sizes are COCO's, by areas of boxes in the original images; what repeats counts once.
std::string data_summary(const Source<Sample>& source, const std::vector<std::string>& classes);

}  // namespace millrace
