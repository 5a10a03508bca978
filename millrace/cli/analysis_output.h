// An analysis of results as text for the terminal, as JSON and as CSV.
#pragma once

#include <string>

#include "millrace/cli/command.h"
#include "millrace/coco/analysis/analysis.h"

namespace millrace::cli {

/// Errors, operating point, confusions and the table of classes.
std::string analysis_text(const coco::Analysis& analysis);
/// AP and AP50 with their intervals. REQUIRES: a spread.
std::string spread_text(const coco::Analysis& analysis);
/// The verdict and the classes that differ most. REQUIRES: a comparison.
std::string versus_text(const coco::Analysis& analysis);

/// Adds "per_class", "errors", "operating_point", "confusion" and "curves".
void add_analysis(Json& json, const coco::Analysis& analysis);
Json spread_json(const coco::Analysis& analysis);
Json versus_json(const coco::Analysis& analysis);

/// A row a class (RFC 4180), shares as they are; empty where there is nothing to say.
std::string analysis_csv(const coco::Analysis& analysis);

}  // namespace millrace::cli
