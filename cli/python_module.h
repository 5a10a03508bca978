// Commands that are written in Python: modules of the package `millrace` (python/millrace).
#pragma once

#include <string>

namespace millrace::cli {

/// Turns this process into `python3 -m millrace.MODULE` with the arguments of `trainer COMMAND`,
/// and the package of this build or installation, else the one that python3 has. MILLRACE_TRAINER
/// names this program to it. Held stop signals stay held. Does not return; throws Error saying what
/// to install if there is no python3.
[[noreturn]] void run_python_module(const std::string& module, const std::string& command);

}  // namespace millrace::cli
