// The functions of a script for bash or zsh that know the commands.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/describe/command_tree.h"

namespace millrace::cli {

/// What bash and zsh write in another way.
struct ShellSyntax {
  const char* branch;     // of a `case`, with its pattern and its words: "    {}) echo '{}' ;;\n"
  const char* otherwise;  // the last branch of the case of commands; may be empty
  /// A word and what it is for.
  std::string (*word)(const std::string& name, const std::string& doc);
};

/// _trainer_commands COMMAND, _trainer_options COMMAND and _trainer_kind COMMAND OPTION, and the
/// array _trainer_settings.
std::string shell_tables(const CommandDoc& program, const std::vector<std::string>& settings,
                         const ShellSyntax& syntax);

}  // namespace millrace::cli
