// What needs no libtorch although trainer-torch alone has all commands: their list in --help, and
// that a configuration is not TOML.
#pragma once

#include <optional>

namespace millrace::cli {

/// Answers `--help` and the command lines that name a faulty configuration first, such as `run
/// FILE.toml`, as trainer-torch would. Returns the exit code; nothing, and has printed nothing, for
/// any other command line.
std::optional<int> answer_what_is_known(int argc, char** argv);

}  // namespace millrace::cli
