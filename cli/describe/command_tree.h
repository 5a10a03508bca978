// What the commands declare of themselves, for shells and the manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace::cli {

/// An option, a flag or a positional argument.
struct ArgumentDoc {
  /// What its value is, as far as a shell can complete it.
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
  std::string name, doc;
  std::vector<ArgumentDoc> arguments;  // hidden ones are left out
  std::vector<std::string> examples;   // each a full command line
  std::vector<CommandDoc> commands;
};

/// The program with its subcommands.
CommandDoc describe_commands(const CLI::App& program);

/// The command and all below it, each before its subcommands.
std::vector<const CommandDoc*> all_commands(const CommandDoc& top);

}  // namespace millrace::cli
