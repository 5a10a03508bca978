// Completion for shells, as scripts that hold all words: no program is started at a Tab.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/describe/command_tree.h"

namespace millrace::cli {

/// The script of each shell for a program with these commands; `settings`: the words after --set.
std::string bash_completion(const CommandDoc& program, const std::vector<std::string>& settings);
std::string zsh_completion(const CommandDoc& program, const std::vector<std::string>& settings);
std::string fish_completion(const CommandDoc& program, const std::vector<std::string>& settings);

}  // namespace millrace::cli
