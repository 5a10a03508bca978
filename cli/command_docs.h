// What each subcommand does, as --help of the whole program has it: both programs know it, although
// `trainer` has only some of the commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace::cli {

struct CommandSummary {
  const char *name, *doc;
};

/// In the order of --help.
std::span<const CommandSummary> command_docs();

/// REQUIRES: there is such a command.
std::string doc_of(std::string_view command);

}  // namespace millrace::cli
