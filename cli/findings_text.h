// Problems found in a data set, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "millrace/cli/command.h"
#include "millrace/coco/data/findings.h"

namespace millrace::cli {

/// Returns "error", "warning" or "note".
std::string_view severity_name(coco::Severity severity);

/// A finding with its examples. `where`: the place of the finding, such as the split "train"; may
/// be empty.
std::string finding_text(const coco::Finding& finding, std::string_view where);
Json finding_json(const coco::Finding& finding, std::string_view where);

/// All findings, without a place.
std::string findings_text(const coco::Findings& findings);
Json findings_json(const coco::Findings& findings);

}  // namespace millrace::cli
