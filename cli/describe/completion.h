// Completion for shells, as scripts that hold all words: no program is started at a Tab.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/describe/command_tree.h"

namespace millrace::cli {

/// The script of each shell for a program with these commands; `settings`: the words after --set.
using MakeCompletion = std::string(const std::vector<CommandDoc>& commands,
                                   const std::vector<std::string>& settings);
MakeCompletion bash_completion, zsh_completion, fish_completion;

}  // namespace millrace::cli
