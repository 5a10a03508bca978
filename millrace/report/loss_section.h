// How well the detector learns what it is shown. Pure; any thread.
#pragma once

#include <span>

#include "millrace/page/page.h"
#include "millrace/report/run_files.h"

namespace millrace::report {

/// Losses, the learning rate and the gradient's norm.
page::Section loss_section(std::span<const RunFiles> runs);

}  // namespace millrace::report
