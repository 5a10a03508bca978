// What the commands declare of themselves, for shells and the manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// An option, a flag or a positional argument.
struct ArgumentDoc {
  /// What a shell completes its value with.
  enum class Kind { flag, words, file, folder, toml_file, setting, other };
  std::vector<std::string> names;  // "-v", "--verbose"; of a positional argument "CONFIG"
  std::string doc;
  std::string value;                 // "DIR", "{a,b}"; of a flag empty
  std::string preset;                // empty: none
  std::vector<std::string> choices;  // of Kind::words
  Kind kind = Kind::other;
  bool is_positional = false, is_required = false;
};

struct CommandDoc {
  std::string path;  // "bench dataflow"; of the program itself empty
  std::string doc;
  std::vector<ArgumentDoc> arguments = {};                            // hidden ones are left out
  std::vector<std::string> examples = {};                             // each a full command line
  std::vector<std::pair<std::string, std::string>> subcommands = {};  // names and docs
};

/// The program, then its commands, each before its subcommands.
std::vector<CommandDoc> describe_commands(const CLI::App& program);

}  // namespace millrace::cli
