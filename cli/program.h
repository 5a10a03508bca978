// Runs a command line, from parsing to the exit code. Two programs share this code: `trainer`,
// which starts fast and has the commands that need no tensors, and `trainer-torch` beside it, which
// has all commands (docs/decisions/0002).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"

namespace millrace::cli {

/// Thrown by a command of `trainer` that finds, before it has printed anything, that trainer-torch
/// must run it.
struct NeedsLibtorch {};

/// Runs a command line and returns the exit code. `all`: `commands` are all commands that exist.
/// Without `all`, prints nothing and returns nullopt if trainer-torch must run the command line: it
/// does not parse, or it asks for help without naming one of `commands`, or its command throws
/// NeedsLibtorch. `more_version`: what --version prints after the program's version.
std::optional<int> run(int argc, char** argv, const std::vector<AddCommand*>& commands, bool all,
                       const std::function<std::string()>& more_version = {});

/// Prints an error to standard error, after everything that was logged. Returns `exit_code`.
int report_error(const std::string& what, int exit_code);

/// Returns "trainer 0.1.0 (258786a...)": the version and the git revision of the build, with
/// "-dirty" appended if the sources differed from it; no revision if the build had none. Only in
/// trainer-torch.
std::string program_version();

/// Returns the day of that revision, "2026-11-23"; empty if the build had none. Only in
/// trainer-torch.
std::string revision_day();

/// Returns lines about the build and this machine's processor for bug reports: revision, compiler,
/// libraries, instruction sets. Only in trainer-torch.
std::string build_facts();

}  // namespace millrace::cli
