// An evaluation's analysis as the viewer's JSON (tools/report/README.md). Pure and thread-safe.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::report {

/// Returns the analysis like `trainer coco-eval --analyze --json`, with added curves over scores
/// and curves of each class. With more than 120 categories, the most frequent confusions replace
/// the matrix.
nlohmann::ordered_json analysis_view(const coco::Analysis& analysis, coco::IouType iou);

}  // namespace millrace::report
