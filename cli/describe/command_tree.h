// Descriptions of all commands and their arguments, for shell completion and the manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// An option, a flag or a positional argument.
struct ArgumentDoc {
  /// The kind of value, which determines how a shell completes it.
  enum class Kind { flag, words, file, folder, toml_file, setting, other };
  std::vector<std::string> names;  // "-v", "--verbose"; "CONFIG" if positional
  std::string doc;
  std::string value;                 // "DIR", "{a,b}"; empty for a flag
  std::string preset;                // default value; empty = none
  std::vector<std::string> choices;  // only for Kind::words
  Kind kind = Kind::other;
  bool is_positional = false, is_required = false;
};

struct CommandDoc {
  std::string path;  // "bench dataflow"; empty for the program itself
  std::string doc;
  std::vector<ArgumentDoc> arguments = {};                            // without hidden ones
  std::vector<std::string> examples = {};                             // each a full command line
  std::vector<std::pair<std::string, std::string>> subcommands = {};  // names and descriptions
};

/// Returns the program, then its commands, each before its subcommands.
std::vector<CommandDoc> describe_commands(const CLI::App& program);

}  // namespace millrace::cli
