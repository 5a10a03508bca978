#include "millrace/cli/describe/completion.h"
#include "millrace/cli/describe/shell_tables.h"
#include "millrace/cli/describe/shell_text.h"

namespace millrace::cli {
namespace {

constexpr const char* kZsh = R"sh(#compdef trainer
# Completion of trainer for zsh, written by `trainer completion zsh`.

@TABLES@
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

}  // namespace

std::string zsh_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  const ShellSyntax syntax{.branch = "    {}) reply=({}) ;;\n",
                           .otherwise = "  *) reply=() ;;\n",
                           .word = [](const std::string& name, const std::string& doc) {
                             return quoted_word(name + ":" + first_line(doc));
                           }};
  return filled(kZsh, {{"@TABLES@", shell_tables(program, settings, syntax)}});
}

}  // namespace millrace::cli
