#include "millrace/cli/describe/man_page.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace millrace::cli {
namespace {

/// Text as roff reads it: no letter of it is a request or an escape.
std::string roff(std::string_view text) {
  std::string escaped;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '"')
      escaped += "\\(dq";
    else if (c == '`')
      escaped += "\\(ga";
    else if (c == '~')
      escaped += "\\(ti";
    else if (c == '^')
      escaped += "\\(ha";
    else
      escaped += c;
    at_begin = c == '\n';
  }
  return escaped;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return roff(text);
}

/// "--out DIR", "[--set K=V]", "CONFIG".
std::string synopsis_of(const ArgumentDoc& argument) {
  auto text = argument.is_positional ? italic(argument.names.front()) : bold(argument.names.back());
  if (!argument.is_positional && !argument.value.empty()) text += " " + italic(argument.value);
  return argument.is_required ? text : "[" + text + "]";
}

bool is_help(const ArgumentDoc& argument) { return argument.names.back() == "--help"; }

std::string arguments_of(const CommandDoc& command) {
  std::string text;
  for (const auto& argument : command.arguments) {
    if (is_help(argument)) continue;
    std::string names;
    for (const auto& name : argument.names)
      names += (names.empty() ? "" : ", ") + (argument.is_positional ? italic(name) : bold(name));
    if (!argument.is_positional && !argument.value.empty()) names += " " + italic(argument.value);
    text += ".TP\n" + names + "\n" + sentence(argument.doc);
    if (!argument.preset.empty()) text += fmt::format(" Default: {}.", roff(argument.preset));
    text += "\n";
  }
  return text;
}

std::string examples_of(const CommandDoc& command) {
  if (command.examples.empty()) return "";
  std::string text = ".PP\nExamples:\n.PP\n.RS 4\n.nf\n";
  for (const auto& example : command.examples) text += roff(example) + "\n";
  return text + ".fi\n.RE\n";
}

std::string section_of(const CommandDoc& command) {
  auto text = fmt::format(".SS {}\n{}\n", roff("trainer " + command.path), sentence(command.doc));
  if (command.commands.empty()) {
    std::string synopsis = bold("trainer " + command.path);
    for (const bool positional : {true, false})
      for (const auto& argument : command.arguments)
        if (argument.is_positional == positional && !is_help(argument))
          synopsis += " " + synopsis_of(argument);
    text += ".PP\n" + synopsis + "\n";
  }
  return text + arguments_of(command) + examples_of(command);
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Failed while running.
.TP
.B 2
Wrong usage, or a wrong configuration.
.TP
.B 3
Stopped early by a signal, with a checkpoint that \fB\-\-resume\fR goes on from.
.SH ENVIRONMENT
.TP
.B LIBTORCH
Where a package finds libtorch: a folder with lib/libtorch_cpu.so.
.TP
.B MILLRACE_CACHE
Where parsed annotation files are kept; off: nowhere. Default: $XDG_CACHE_HOME/millrace, else
\(ti/.cache/millrace.
.TP
.B NO_COLOR
Not empty: no colours on a terminal.
.SH FILES
.TP
.I runs/NAME\-N
A run: config.toml, log.txt, metrics.jsonl, record.json, checkpoints, detections, pictures.
.SH SEE ALSO
The pages in share/doc/millrace/docs of the installation: configuration.md, callbacks.md, doctor.md,
weights.md, predict.md, export.md.
)";

}  // namespace

std::string man_page(const CommandDoc& program, const std::string& version,
                     const std::string& day) {
  auto text = fmt::format(
      ".TH TRAINER 1 \"{}\" \"Millrace {}\" \"User Commands\"\n"
      ".SH NAME\ntrainer \\- train object detectors from a TOML file\n"
      ".SH SYNOPSIS\n.B trainer\n[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n{}\n"
      "Standard output has results, standard error what happens; on a terminal a command ends by "
      "saying what to do next.\n"
      "Each command has \\fB\\-\\-help\\fR.\n",
      day, roff(version), sentence(program.doc));
  text += ".SH OPTIONS\n" + arguments_of(program);
  text += ".SH COMMANDS\n";
  for (const auto* command : all_commands(program))
    if (command != &program) text += section_of(*command);
  return text + kEnd;
}

}  // namespace millrace::cli
