// An analysis of results as text for the terminal and as CSV.
#pragma once

#include <string>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::cli {

/// What `analysis` has of these: AP and AP50 with their intervals; with `analyzed` errors,
/// operating point, confusions and the table of classes; the verdict of a comparison and the
/// classes that differ most.
std::string analysis_text(const coco::Analysis& analysis, bool analyzed);

/// A row per class (RFC 4180), shares as they are; empty where a figure is undefined.
std::string analysis_csv(const coco::Analysis& analysis);

}  // namespace millrace::cli
