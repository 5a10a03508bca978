// The analysis of detections as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::coco {

/// Adds "bootstrap" (AP and AP50 with intervals) and "versus" (the comparison) if the analysis has
/// them. With `analyzed`, also adds "per_class", "errors", "operating_point", "confusion" and
/// "curves".
void add_analysis(nlohmann::ordered_json& json, const Analysis& analysis, bool analyzed);

}  // namespace millrace::coco
