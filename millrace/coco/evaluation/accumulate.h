// The second half of the evaluation: from what detections hit to tables of precision and recall.
#pragma once

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Tables and figures. Runs in the calling thread's arena. The same bits for any number of threads.
Evaluation accumulate(const Dataset& truth, const Matches& matches, const EvaluateOptions& options);

}  // namespace millrace::coco
