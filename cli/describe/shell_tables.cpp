#include "millrace/cli/describe/shell_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millrace/cli/describe/shell_text.h"

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;

std::string kind_text(const ArgumentDoc& argument) {
  switch (argument.kind) {
    case Kind::words:
      return fmt::format("words {}", fmt::join(argument.choices, " "));
    case Kind::file:
      return "file";
    case Kind::folder:
      return "folder";
    case Kind::toml_file:
      return "toml";
    case Kind::setting:
      return "setting";
    case Kind::flag:
    case Kind::other:
      break;
  }
  return "other";
}

/// The branches of a `case "$command $option"` that print what follows an option, and of "$command
/// " what a positional argument is.
std::string kind_cases(const CommandDoc& program) {
  std::string cases;
  for (const auto* command : all_commands(program)) {
    bool has_positional = false;
    for (const auto& argument : command->arguments) {
      if (argument.kind == Kind::flag || (argument.is_positional && has_positional)) continue;
      has_positional |= argument.is_positional;
      std::vector<std::string> patterns;
      for (const auto& name : argument.names)
        patterns.push_back(quoted_word(command->path + " " + (argument.is_positional ? "" : name)));
      cases += fmt::format("    {}) echo {} ;;\n", fmt::join(patterns, " | "),
                           quoted_word(kind_text(argument)));
    }
  }
  return cases;
}

/// The branches of a `case "$command"` with its options.
std::string option_cases(const CommandDoc& program, const ShellSyntax& syntax) {
  std::string cases;
  for (const auto* command : all_commands(program)) {
    std::vector<std::string> words;
    for (const auto* of : {command, &program}) {  // options of the program go with every command
      for (const auto& argument : of->arguments)
        for (const auto& name : argument.names)
          if (name.starts_with("--") && !(of != command && name == "--help") &&
              !(of != command && name == "--version"))
            words.push_back(syntax.word(name, argument.doc));
      if (of == &program) break;
    }
    cases +=
        fmt::format(fmt::runtime(syntax.branch), quoted_word(command->path), fmt::join(words, " "));
  }
  return cases;
}

/// The same with the commands below it.
std::string command_cases(const CommandDoc& program, const ShellSyntax& syntax) {
  std::string cases;
  for (const auto* command : all_commands(program)) {
    if (command->commands.empty()) continue;
    std::vector<std::string> words;
    for (const auto& one : command->commands) words.push_back(syntax.word(one.name, one.doc));
    cases +=
        fmt::format(fmt::runtime(syntax.branch), quoted_word(command->path), fmt::join(words, " "));
  }
  return cases;
}

constexpr const char* kTables = R"sh(_trainer_commands() {
  case $1 in
@COMMANDS@  esac
}

_trainer_options() {
  case $1 in
@OPTIONS@  esac
}

# What follows OPTION of COMMAND, or without one what COMMAND works on.
_trainer_kind() {
  case "$1 $2" in
@KINDS@  esac
}

_trainer_settings=(
@SETTINGS@)
)sh";

}  // namespace

std::string shell_tables(const CommandDoc& program, const std::vector<std::string>& settings,
                         const ShellSyntax& syntax) {
  return filled(kTables, {{"@COMMANDS@", command_cases(program, syntax) + syntax.otherwise},
                          {"@OPTIONS@", option_cases(program, syntax)},
                          {"@KINDS@", kind_cases(program)},
                          {"@SETTINGS@", quoted_words(settings, "  {}\n")}});
}

}  // namespace millrace::cli
