// Shell completion scripts that contain all words, so that pressing Tab starts no program.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/describe/command_tree.h"

namespace millrace::cli {

/// Returns the completion script of one shell for a program with these commands. `settings`:
/// completions for the value of --set.
using MakeCompletion = std::string(const std::vector<CommandDoc>& commands,
                                   const std::vector<std::string>& settings);
MakeCompletion bash_completion, zsh_completion, fish_completion;

}  // namespace millrace::cli
