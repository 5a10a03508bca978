// Problems found in a data set, as text and as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "millrace/cli/command.h"
#include "millrace/coco/data/findings.h"

namespace millrace::cli {

/// Returns "error", "warning" or "note".
std::string_view severity_name(coco::Severity severity);

/// Findings with their examples.
std::string findings_text(std::span<const coco::Finding> findings);
Json findings_json(std::span<const coco::Finding> findings);

}  // namespace millrace::cli
