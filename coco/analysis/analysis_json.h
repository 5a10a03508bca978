// An analysis of results as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::coco {

/// Adds AP and AP50 with their intervals as "bootstrap" and a comparison as "versus", where there
/// are any; with `analyzed` also "per_class", "errors", "operating_point", "confusion" and
/// "curves".
void add_analysis(nlohmann::ordered_json& json, const Analysis& analysis, bool analyzed);

}  // namespace millrace::coco
