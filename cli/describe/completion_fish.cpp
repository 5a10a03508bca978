#include "millrace/cli/describe/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "millrace/cli/describe/shell_text.h"

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;

constexpr const char* kFish =
    R"sh(# Completion of trainer for fish, written by `trainer completion fish`.

complete -c trainer -f

function __trainer_settings
    printf '%s\n' \
@SETTINGS@
end

# Whether the words so far name the command $argv[1].
function __trainer_at
    set -l path ''
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; and continue
        set -l longer (string trim -- "$path $word")
        contains -- $longer @PATHS@; or break
        set path $longer
    end
    test "$path" = "$argv[1]"
end

)sh";

/// As a string of fish, which knows \' within quotes and nothing else of the above.
std::string fish_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return word + "'";
}

std::string fish_value(const ArgumentDoc& argument) {
  switch (argument.kind) {
    case Kind::words:
      return fmt::format(" -x -a {}",
                         fish_word(fmt::format("{}", fmt::join(argument.choices, " "))));
    case Kind::file:
      return " -r -F";
    case Kind::folder:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::toml_file:
      return " -x -a '(__fish_complete_suffix .toml)'";
    case Kind::setting:
      return " -x -a '(__trainer_settings)'";
    case Kind::other:
      return " -x";
    case Kind::flag:
      break;
  }
  return "";
}

}  // namespace

std::string fish_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  auto words = quoted_words(settings, "        {} \\\n");
  words.erase(words.size() - 3);  // the last line goes on nowhere
  std::vector<std::string> paths;
  for (const auto* command : all_commands(program))
    if (command != &program) paths.push_back(fish_word(command->path));
  auto script =
      filled(kFish, {{"@SETTINGS@", words}, {"@PATHS@", fmt::format("{}", fmt::join(paths, " "))}});
  for (const auto* command : all_commands(program)) {
    const auto here =
        fmt::format("complete -c trainer -n {}", fish_word("__trainer_at '" + command->path + "'"));
    for (const auto& one : command->commands)
      script += fmt::format("{} -a {} -d {}\n", here, one.name, fish_word(first_line(one.doc)));
    bool has_positional = false;
    for (const auto& argument : command->arguments) {
      if (argument.is_positional) {
        if (!std::exchange(has_positional, true) && argument.kind != Kind::other)
          script +=
              here +
              (argument.kind == Kind::file ? std::string(" -F") : fish_value(argument).substr(3)) +
              "\n";
        continue;
      }
      script += command == &program ? "complete -c trainer" : here;
      for (const auto& name : argument.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      script += fish_value(argument) + " -d " + fish_word(first_line(argument.doc)) + "\n";
    }
  }
  return script;
}

}  // namespace millrace::cli
