#include "millrace/cli/describe/completion.h"
#include "millrace/cli/describe/shell_tables.h"
#include "millrace/cli/describe/shell_text.h"

namespace millrace::cli {
namespace {

constexpr const char* kBash =
    R"sh(# Completion of trainer for bash, written by `trainer completion bash`.

@TABLES@
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

}  // namespace

std::string bash_completion(const CommandDoc& program, const std::vector<std::string>& settings) {
  const ShellSyntax syntax{
      .branch = "    {}) echo '{}' ;;\n",
      .otherwise = "",
      .word = [](const std::string& name, const std::string&) { return name; }};
  return filled(kBash, {{"@TABLES@", shell_tables(program, settings, syntax)}});
}

}  // namespace millrace::cli
