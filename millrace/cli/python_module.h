// Commands that are written in Python: modules of the package `millrace` (python/millrace).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace::cli {

/// The words that `command` has parsed, with --verbose or --quiet of the program: options by their
/// long names, then what stands alone.
std::vector<std::string> given_words(const CLI::App& command);

/// The words of this process's command line behind the name of the command, as they were given:
/// CLI11 takes texts such as "[1, 2]" apart.
std::vector<std::string> words_behind(const std::string& command);

/// Turns this process into `python3 -m millrace.NAME ARGUMENTS`, with the package of this build or
/// installation, else the one that python3 has. MILLRACE_TRAINER names this program to it. Held
/// stop signals stay held. Does not return; throws Error saying what to install if there is no
/// python3.
[[noreturn]] void run_python_module(const std::string& name,
                                    const std::vector<std::string>& arguments);

}  // namespace millrace::cli
