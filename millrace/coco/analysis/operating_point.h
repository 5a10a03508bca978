// What a detector gives at one threshold of score, as it is used.
#pragma once

#include <vector>

#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// All categories together at IoU .5, of the detections with at least this score.
struct OperatingPoint {
  double score = 0;
  double precision = 0, recall = 0, f1 = 0;
};

struct OperatingPoints {
  OperatingPoint best;  // the highest F1; the highest score of equals
  // By falling score, at most 200 of equal distance in number of detections
  std::vector<OperatingPoint> curve;
};

/// Empty curve and all zero where nothing is found or to be found.
OperatingPoints operating_points(const Matches& matches);

}  // namespace millrace::coco
