// How well the detector does, evaluation after evaluation. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// AP at each evaluation, of all objects and by size, when it was reached, and each class.
/// `class_names`: by category id.
page::Section score_section(std::span<const RunFiles> runs,
                            const std::map<std::int64_t, std::string>& class_names);

}  // namespace millrace::report
