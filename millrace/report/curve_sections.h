// What the metrics of runs show over their steps. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// Losses, the learning rate and the gradient's norm.
page::Section loss_section(std::span<const RunFiles> runs);

/// AP at each evaluation, of all objects and by size, when it was reached, and each class.
/// `class_names`: by category id.
page::Section score_section(std::span<const RunFiles> runs,
                            const std::map<std::int64_t, std::string>& class_names);

/// Images per second, where the time of steps went, and memory.
page::Section speed_section(std::span<const RunFiles> runs);

/// The figures of the detector's heads; no title if there are none.
page::Section head_section(std::span<const RunFiles> runs);

}  // namespace millrace::report
