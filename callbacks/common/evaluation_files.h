// The files of an evaluation while training.
#pragma once

#include <filesystem>

#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

struct EvaluationFiles {
  std::filesystem::path results;  // the detections, as COCO results; empty: they are not written
  std::filesystem::path scores;   // as `trainer eval --json` has them
};

/// Writes both, and moves the detections out of the scores into theirs. Makes the folders. Throws
/// Error.
DetectorScores written(DetectorScores scores, const EvaluationFiles& files);

}  // namespace millrace
