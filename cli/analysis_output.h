// An analysis of detection results as text for the terminal and as CSV.
#pragma once

#include <string>

#include "millrace/coco/analysis/analysis.h"

namespace millrace::cli {

/// Returns the available parts of `analysis` as text: AP and AP50 with their intervals; if
/// `analyzed`, the errors, operating point, confusions and table of classes; the verdict of a
/// comparison and the classes that differ most.
std::string analysis_text(const coco::Analysis& analysis, bool analyzed);

/// Returns one row per class (RFC 4180). Shares are fractions, not per cent; an undefined metric is
/// an empty field.
std::string analysis_csv(const coco::Analysis& analysis);

}  // namespace millrace::cli
