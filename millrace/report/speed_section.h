// How fast the runs trained. Pure; any thread.
#pragma once

#include <span>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// Images per second, where the time of steps went, and memory.
page::Section speed_section(std::span<const RunFiles> runs);

}  // namespace millrace::report
