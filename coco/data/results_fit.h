// A check that a results file belongs to the images of a data set.
#pragma once

#include <string>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// Throws Error naming `file` if most detections have an image id that the data set lacks, or if
/// the detections of most images cannot belong to them: masks of another size, or boxes with their
/// centre outside the image.
void require_fit(const Detections& found, const Dataset& truth, const std::string& file);

}  // namespace millrace::coco
