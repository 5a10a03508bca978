#include "millrace/cli/describe/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "millrace/cli/carried_files.h"

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;
using Words = std::vector<std::string>;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Puts texts in place of names that a script has: "@COMMANDS@". REQUIRES: it has each.
std::string filled(std::string script,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) script.replace(script.find(name), name.size(), value);
  return script;
}

/// A word in quotes, as bash, zsh and fish read it.
std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// A word in quotes with the escapes that fish knows within them, \' and \\.
std::string fish_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return word + "'";
}

/// What bash and zsh write in another way.
struct ShellSyntax {
  const char* branch;     // of a `case`, with its pattern and its words: "    {}) echo '{}' ;;\n"
  const char* otherwise;  // the last branch of the case of commands; may be empty
  /// A word and what it is for.
  std::string (*word)(const std::string& name, const std::string& doc);
};

/// The branches of a `case "$command $option"` that print what follows an option, and of "$command
/// " what a positional argument is.
std::string kind_cases(const std::vector<CommandDoc>& commands) {
  constexpr const char* kKinds[] = {"other", "words", "file", "folder", "toml", "setting", "other"};
  std::string cases;
  for (const auto& command : commands) {
    bool has_positional = false;
    for (const auto& argument : command.arguments) {
      if (argument.kind == Kind::flag || (argument.is_positional && has_positional)) continue;
      has_positional |= argument.is_positional;
      Words patterns;
      for (const auto& name : argument.names)
        patterns.push_back(quoted_word(command.path + " " + (argument.is_positional ? "" : name)));
      Words kind = argument.choices;
      kind.insert(kind.begin(), kKinds[static_cast<std::size_t>(argument.kind)]);
      cases += fmt::format("    {}) echo {} ;;\n", fmt::join(patterns, " | "),
                           quoted_word(fmt::format("{}", fmt::join(kind, " "))));
    }
  }
  return cases;
}

/// The branches of a `case "$command"` with its options, those of the program among them.
std::string option_cases(const std::vector<CommandDoc>& commands, const ShellSyntax& syntax) {
  std::string cases;
  for (const auto& command : commands) {
    Words words;
    const auto add = [&](const CommandDoc& of, bool is_own) {
      for (const auto& argument : of.arguments)
        for (const auto& name : argument.names)
          if (name.starts_with("--") && (is_own || (name != "--help" && name != "--version")))
            words.push_back(syntax.word(name, argument.doc));
    };
    add(command, true);
    if (!command.path.empty()) add(commands.front(), false);
    cases +=
        fmt::format(fmt::runtime(syntax.branch), quoted_word(command.path), fmt::join(words, " "));
  }
  return cases;
}

/// The same with the commands below it.
std::string command_cases(const std::vector<CommandDoc>& commands, const ShellSyntax& syntax) {
  std::string cases;
  for (const auto& command : commands) {
    if (command.subcommands.empty()) continue;
    Words words;
    for (const auto& [name, doc] : command.subcommands) words.push_back(syntax.word(name, doc));
    cases +=
        fmt::format(fmt::runtime(syntax.branch), quoted_word(command.path), fmt::join(words, " "));
  }
  return cases + syntax.otherwise;
}

std::string filled_cases(const char* script, const std::vector<CommandDoc>& commands,
                         const Words& settings, const ShellSyntax& syntax) {
  std::string all;
  for (const auto& word : settings) all += fmt::format("  {}\n", quoted_word(word));
  return filled(script, {{"@COMMANDS@", command_cases(commands, syntax)},
                         {"@OPTIONS@", option_cases(commands, syntax)},
                         {"@KINDS@", kind_cases(commands)},
                         {"@SETTINGS@", all}});
}

/// How `complete` of fish completes the value of an argument.
std::string fish_value(const ArgumentDoc& argument) {
  constexpr const char* kValues[] = {"",
                                     " -x -a ",
                                     " -r -F",
                                     " -x -a '(__fish_complete_directories)'",
                                     " -x -a '(__fish_complete_suffix .toml)'",
                                     " -x -a '(__trainer_settings)'",
                                     " -x"};
  const std::string value = kValues[static_cast<std::size_t>(argument.kind)];
  return argument.kind == Kind::words
             ? value + fish_word(fmt::format("{}", fmt::join(argument.choices, " ")))
             : value;
}

}  // namespace

std::string bash_completion(const std::vector<CommandDoc>& commands, const Words& settings) {
  return filled_cases(kBashCompletion, commands, settings,
                      {.branch = "    {}) echo '{}' ;;\n",
                       .otherwise = "",
                       .word = [](const std::string& name, const std::string&) { return name; }});
}

std::string zsh_completion(const std::vector<CommandDoc>& commands, const Words& settings) {
  return filled_cases(kZshCompletion, commands, settings,
                      {.branch = "    {}) reply=({}) ;;\n",
                       .otherwise = "  *) reply=() ;;\n",
                       .word = [](const std::string& name, const std::string& doc) {
                         return quoted_word(name + ":" + first_line(doc));
                       }});
}

std::string fish_completion(const std::vector<CommandDoc>& commands, const Words& settings) {
  Words words, paths;
  for (const auto& word : settings) words.push_back(quoted_word(word));
  for (const auto& command : commands)
    if (!command.path.empty()) paths.push_back(fish_word(command.path));
  auto script =
      filled(kFishCompletion, {{"@SETTINGS@", fmt::format("{}", fmt::join(words, " \\\n        "))},
                               {"@PATHS@", fmt::format("{}", fmt::join(paths, " "))}});
  for (const auto& command : commands) {
    const auto here =
        fmt::format("complete -c trainer -n {}", fish_word("__trainer_at '" + command.path + "'"));
    for (const auto& [name, doc] : command.subcommands)
      script += fmt::format("{} -a {} -d {}\n", here, name, fish_word(first_line(doc)));
    bool has_positional = false;
    for (const auto& argument : command.arguments) {
      if (argument.is_positional) {
        if (!std::exchange(has_positional, true) && argument.kind != Kind::other)
          script +=
              here + (argument.kind == Kind::file ? " -F" : fish_value(argument).substr(3)) + "\n";
        continue;
      }
      script += command.path.empty() ? "complete -c trainer" : here;
      for (const auto& name : argument.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      script += fish_value(argument) + " -d " + fish_word(first_line(argument.doc)) + "\n";
    }
  }
  return script;
}

}  // namespace millrace::cli
