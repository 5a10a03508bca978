// A command line, from its words to an exit code. Two programs share it: `trainer`, which starts at
// once and knows what needs no tensors, and `trainer-torch` beside it, which knows everything
// (docs/decisions/0008).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"

namespace millrace::cli {

/// What a command throws that finds out, before it has printed anything, that trainer-torch has to
/// run it.
struct NeedsLibtorch {};

/// Runs a command line and returns the exit code. `all`: whether these are all the commands there
/// are. If not, a command line that they do not understand, that asks for help with none of them,
/// or whose command throws NeedsLibtorch, is for another program: prints nothing and returns
/// nothing. `more_version`: what --version prints after the program's own.
std::optional<int> run(int argc, char** argv, const std::vector<AddCommand*>& commands, bool all,
                       const std::function<std::string()>& more_version = {});

/// Says on standard error, after what was logged, what is wrong. Returns the exit code.
int complain(const std::string& what, int exit_code);

/// "trainer 0.1.0 (258786a...)": the version and, where there was one, the git revision of the
/// build, "-dirty" after it where the sources differed. Of trainer-torch alone.
std::string program_version();

/// The day of that revision, "2026-11-23"; empty where there was none. Of trainer-torch alone.
std::string revision_day();

/// Lines about the build and the processor here, for reports of faults: revision, compiler,
/// libraries, instructions. Of trainer-torch alone.
std::string build_facts();

}  // namespace millrace::cli
