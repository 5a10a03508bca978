// trainer completion: prints the script by which a shell completes this program's commands,
// options, files and configuration keys. It contains all words, so that pressing Tab starts no
// program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <utility>

#include "millrace/cli/carried_files.h"
#include "millrace/cli/command.h"
#include "millrace/cli/describe/command_tree.h"
#include "millrace/cli/describe/config_tables.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;
using Words = std::vector<std::string>;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Replaces placeholders such as "@COMMANDS@" in a script with texts. REQUIRES: the script has
/// each.
std::string filled(std::string script,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) script.replace(script.find(name), name.size(), value);
  return script;
}

/// Returns a word in quotes for bash and zsh, and for fish if it has no backslash.
std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// Returns a word in quotes for fish, whose escapes within quotes are \' and \\.
std::string fish_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return word + "'";
}

/// Differences between bash and zsh.
struct ShellSyntax {
  const char* branch;     // format of a `case` branch: pattern, words: "    {}) echo '{}' ;;\n"
  const char* otherwise;  // last branch of the case of commands; may be empty
  /// Returns a word with its description, as the shell expects it.
  std::string (*word)(const std::string& name, const std::string& doc);
};

/// Returns branches of `case "$command $option"` that print the kind of an option's value, and of
/// "$command " for the first positional argument.
std::string kind_cases(const std::vector<CommandDoc>& commands) {
  constexpr const char* kKindNames[] = {"other", "words",   "file", "folder",
                                        "toml",  "setting", "other"};
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
      kind.insert(kind.begin(), kKindNames[static_cast<std::size_t>(argument.kind)]);
      cases += fmt::format("    {}) echo {} ;;\n", fmt::join(patterns, " | "),
                           quoted_word(fmt::format("{}", fmt::join(kind, " "))));
    }
  }
  return cases;
}

/// Returns branches of `case "$command"` with each command's options, including those of the
/// program.
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

/// Returns branches of `case "$command"` with each command's subcommands.
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

/// Returns the options of fish's `complete` for the value of an argument.
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

/// Returns the script of bash. `settings`: completions for the value of --set.
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

struct CompletionArguments {
  const CLI::App* program = nullptr;
  std::string shell;
};

void add_words(std::set<std::string>& words, const std::string& table,
               const std::vector<OptionHelp>& options) {
  for (const auto& option : options) {
    const auto key = table + (table.empty() ? "" : ".") + option.name + "=";
    words.insert(key);
    if (option.type == OptionHelp::Type::boolean)
      words.insert({key + "false", key + "true"});
    else if (option.type == OptionHelp::Type::text)
      for (const auto& choice : option.choices) words.insert(key + choice);
  }
}

/// Returns the completions for --set, sorted: every key of a configuration ("train.seed="),
/// including the keys of all registered components; a key with a fixed set of values also with each
/// value ("optimizer.type=sgd").
std::vector<std::string> setting_words() {
  std::set<std::string> words;
  std::vector<OptionHelp> switches;  // options of every callback
  for (const auto& table : config_tables()) {
    if (table.name == "callbacks.NAME")
      switches = table.options;
    else if (!table.name.starts_with("["))  // lists can only be written in a file
      add_words(words, table.name, table.options);
  }
  for (const auto& [name, entry] : detectors().entries()) {
    words.insert("model.type=" + name);
    add_words(words, "model", entry.help());
  }
  for (const auto& [name, entry] : callbacks().entries()) {
    add_words(words, "callbacks." + name, switches);
    add_words(words, "callbacks." + name, entry.help());
  }
  return {words.begin(), words.end()};
}

int completion(const CompletionArguments& arguments) {
  const auto commands = describe_commands(*arguments.program);
  const auto make = arguments.shell == "bash"  ? bash_completion
                    : arguments.shell == "zsh" ? zsh_completion
                                               : fish_completion;
  print_text(make(commands, setting_words()));
  suggest_next(arguments.shell == "fish"
                   ? "trainer completion fish >~/.config/fish/completions/trainer.fish"
                   : "in ~/." + arguments.shell + "rc: source <(trainer completion " +
                         arguments.shell + ")");
  return kDone;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "completion", completion);
  arguments.program = &app;
  command.add_option("SHELL", arguments.shell, "shell to print the script for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(command, {"trainer completion bash >>~/.bash_completion",
                         "trainer completion zsh >~/.zfunc/_trainer",
                         "trainer completion fish >~/.config/fish/completions/trainer.fish"});
}

}  // namespace millrace::cli
