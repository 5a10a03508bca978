// What the heads of the detector count of themselves. Pure; any thread.
#pragma once

#include <span>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// The figures of the detector's heads; no title if there are none.
page::Section head_section(std::span<const RunFiles> runs);

}  // namespace millrace::report
