// An evaluation's analysis as the viewer's JSON (tools/report/README.md). Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::report {

/// What `trainer coco-eval --analyze --json` prints of it, and its curves over scores and of each
/// class. Of many categories the most frequent confusions take the place of the matrix.
nlohmann::ordered_json analysis_view(const coco::Analysis& analysis, coco::IouType iou);

}  // namespace millrace::report
