#include "millrace/cli/describe/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;

/// A word as all three shells read it.
std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// As a string of fish, which knows \' within quotes and nothing else of the above.
std::string fish_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return word + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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

/// The branches of a `case "$command"` with its options; `format` writes one.
template <class Format>
std::string option_cases(const CommandDoc& program, const char* branch, Format format) {
  std::string cases;
  for (const auto* command : all_commands(program)) {
    std::vector<std::string> words;
    for (const auto* of : {command, &program}) {  // options of the program go with every command
      for (const auto& argument : of->arguments)
        for (const auto& name : argument.names)
          if (name.starts_with("--") && !(of != command && name == "--help") &&
              !(of != command && name == "--version"))
            words.push_back(format(name, argument.doc));
      if (of == &program) break;
    }
    cases += fmt::format(fmt::runtime(branch), quoted_word(command->path), fmt::join(words, " "));
  }
  return cases;
}

template <class Format>
std::string command_cases(const CommandDoc& program, const char* branch, Format format) {
  std::string cases;
  for (const auto* command : all_commands(program)) {
    if (command->commands.empty()) continue;
    std::vector<std::string> words;
    for (const auto& one : command->commands) words.push_back(format(one.name, one.doc));
    cases += fmt::format(fmt::runtime(branch), quoted_word(command->path), fmt::join(words, " "));
  }
  return cases;
}

/// Puts texts in place of @NAME@.
std::string filled(std::string text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) text.replace(text.find(name), name.size(), value);
  return text;
}

constexpr const char* kBash =
    R"sh(# Completion of trainer for bash, written by `trainer completion bash`.

_trainer_commands() {
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

# Keys that begin with $1, up to the next dot or equals sign.
_trainer_complete_setting() {
  local word rest head
  for word in "${_trainer_settings[@]}"; do
    [[ $word == "$1"* ]] || continue
    rest=${word#"$1"} head=${word#"$1"}
    head=${head%%[.=]*}
    printf '%s\n' "$1$head${rest:${#head}:1}"
  done | sort -u
}

_trainer() {
  local line=${COMP_LINE:0:COMP_POINT} words command='' option='' value kind i
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  for ((i = 1; i < ${#words[@]} - 1; ++i)); do
    [[ ${words[i]} == -* ]] && continue
    if [[ " $(_trainer_commands "$command") " == *" ${words[i]} "* ]]; then
      command=${command:+$command }${words[i]}
    else
      break
    fi
  done
  value=${words[-1]}
  if [[ $value == --*=* ]]; then
    option=${value%%=*} value=${value#*=}
  elif ((${#words[@]} > 2)) && [[ ${words[-2]} == -* ]]; then
    option=${words[-2]}
  fi
  kind=$(_trainer_kind "$command" "$option")
  if [[ -z $kind || -z $option ]]; then
    if [[ $value == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$(_trainer_options "$command")" -- "$value")
      return
    fi
    kind=$(_trainer_kind "$command" '')
    [[ -n $(_trainer_commands "$command") ]] && kind="words $(_trainer_commands "$command")"
  fi
  case $kind in
    words*) mapfile -t COMPREPLY < <(compgen -W "${kind#words }" -- "$value") ;;
    folder) mapfile -t COMPREPLY < <(compgen -d -- "$value") && compopt -o filenames ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$value") && compopt -o filenames ;;
    toml) mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$value"; compgen -d -- "$value") && compopt -o filenames ;;
    setting)
      mapfile -t COMPREPLY < <(_trainer_complete_setting "$value")
      [[ ${COMPREPLY[0]} == *[.=] ]] && compopt -o nospace
      ;;
  esac 2>/dev/null
  # Readline completes what stands after the last equals sign.
  [[ $COMP_WORDBREAKS == *=* && $value == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${value%=*}="}")
  return 0
}

complete -F _trainer trainer
)sh";

constexpr const char* kZsh = R"sh(#compdef trainer
# Completion of trainer for zsh, written by `trainer completion zsh`.

_trainer_commands() {
  case $1 in
@COMMANDS@  *) reply=() ;;
  esac
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

# Keys that begin with $1, up to the next dot or equals sign.
_trainer_complete_setting() {
  local word rest head
  local -aU begun whole
  for word in "${_trainer_settings[@]}"; do
    [[ $word == "$1"* ]] || continue
    rest=${word#"$1"}
    head=${rest%%[.=]*}
    if [[ $head == "$rest" ]]; then
      whole+=("$word")
    else
      begun+=("$1$head${rest[$#head+1]}")
    fi
  done
  compadd -S '' -- "${begun[@]}"
  compadd -- "${whole[@]}"
}

_trainer() {
  local command='' option='' value kind word i
  local -a reply
  for ((i = 2; i < CURRENT; ++i)); do
    word=${words[i]}
    [[ $word == -* ]] && continue
    _trainer_commands "$command"
    if ((${reply[(I)$word:*]})); then
      command=${command:+$command }$word
    else
      break
    fi
  done
  value=${words[CURRENT]}
  if [[ $value == --*=* ]]; then
    option=${value%%=*}
    value=${value#*=}
    compset -P '*='
  elif ((CURRENT > 2)) && [[ ${words[CURRENT-1]} == -* ]]; then
    option=${words[CURRENT-1]}
  fi
  kind=$(_trainer_kind "$command" "$option")
  if [[ -z $kind || -z $option ]]; then
    if [[ $value == -* ]]; then
      _trainer_options "$command"
      _describe -o option reply
      return
    fi
    _trainer_commands "$command"
    if (($#reply)); then
      _describe command reply
      return
    fi
    kind=$(_trainer_kind "$command" '')
  fi
  case $kind in
    words*) compadd -- ${=kind#words } ;;
    folder) _files -/ ;;
    file) _files ;;
    toml) _files -g '*.toml' ;;
    setting) _trainer_complete_setting "$value" ;;
  esac
}

if [[ ${funcstack[1]} == _trainer ]]; then
  _trainer "$@"
else
  compdef _trainer trainer
fi
)sh";

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

std::string lines(const std::vector<std::string>& words, const char* each) {
  std::string text;
  for (const auto& word : words) text += fmt::format(fmt::runtime(each), quoted_word(word));
  return text;
}

}  // namespace

std::string bash_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  const auto name_alone = [](const std::string& name, const std::string&) { return name; };
  return filled(kBash,
                {{"@COMMANDS@", command_cases(program, "    {}) echo '{}' ;;\n", name_alone)},
                 {"@OPTIONS@", option_cases(program, "    {}) echo '{}' ;;\n", name_alone)},
                 {"@KINDS@", kind_cases(program)},
                 {"@SETTINGS@", lines(settings, "  {}\n")}});
}

std::string zsh_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  const auto with_doc = [](const std::string& name, const std::string& doc) {
    return quoted_word(name + ":" + first_line(doc));
  };
  return filled(kZsh, {{"@COMMANDS@", command_cases(program, "    {}) reply=({}) ;;\n", with_doc)},
                       {"@OPTIONS@", option_cases(program, "    {}) reply=({}) ;;\n", with_doc)},
                       {"@KINDS@", kind_cases(program)},
                       {"@SETTINGS@", lines(settings, "  {}\n")}});
}

std::string fish_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  auto words = lines(settings, "        {} \\\n");
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
