// Counts the objects of a source without reading pixels, with all threads of the caller's arena.
#pragma once

#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

ObjectCounts count_objects(const Source<Sample>& source);

/// Returns the number of images and objects by class and size, as text of several lines for a log.
/// Sizes are COCO's, by areas of boxes in the original images; repeated samples count once.
std::string data_summary(const Source<Sample>& source, const std::vector<std::string>& classes);

}  // namespace millrace
