// The report of `trainer check-gpu` for people.
#pragma once

#include <string>

#include "millrace/cli/command.h"

namespace millrace::cli {

/// The page, in Markdown, from the whole report:
///   version, started, device, small, seconds, result
///   parts  [{name, title, state, seconds, why, ...the members of a PartReport}]
/// state: "ok", "failed" (a check, or it threw), "crashed", "timed out", "skipped", "not begun" or
/// "running".
std::string check_gpu_page(const Json& report);

/// What the terminal gets of a part once it has ended: a line for it, one for each check that
/// failed, and the first rows of each table.
std::string part_lines(const Json& part);

}  // namespace millrace::cli
