// A command line, from its words to an exit code. Two programs share it: `trainer`, which starts at
// once and knows what needs no tensors, and `trainer-torch` beside it, which knows everything
// (docs/decisions/0008).
#pragma once

#include <optional>
#include <vector>

#include "millrace/cli/command.h"

namespace millrace::cli {

/// Declares a subcommand.
using AddCommand = void (*)(CLI::App& app, Action& action);

/// Runs what a command line asks for; the exit code. Nothing where it is none for these commands:
/// it may be another program's.
std::optional<int> run_if_known(int argc, char** argv, const std::vector<AddCommand>& commands);

/// The same for the program that knows all commands: says what is wrong with the command line.
int run(int argc, char** argv, const std::vector<AddCommand>& commands);

}  // namespace millrace::cli
