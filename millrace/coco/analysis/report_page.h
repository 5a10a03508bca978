// The evaluation as one HTML page: self-contained, no scripts, light and dark. Pure.
#pragma once

#include <string>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::coco {

/// What the page calls its inputs.
struct ReportNames {
  std::string truth, detections, versus;
};

/// Equal input gives equal bytes.
std::string report_page(const Analysis& analysis, IouType iou, const ReportNames& names);

}  // namespace millrace::coco
