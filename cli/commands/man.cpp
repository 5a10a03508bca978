// trainer man: prints the manual page.
#include <fmt/format.h>

#include <map>
#include <string_view>
#include <vector>

#include "millrace/cli/carried_files.h"
#include "millrace/cli/command.h"
#include "millrace/cli/describe/command_tree.h"
#include "millrace/cli/program.h"

namespace millrace::cli {
namespace {

/// Escapes text for roff, so that nothing in it is a request or an escape.
std::string roff(std::string_view text) {
  static const std::map<char, std::string_view> kEscapes = {
      {'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'"', "\\(dq"},
      {'`', "\\(ga"}, {'~', "\\(ti"}, {'^', "\\(ha"}};
  std::string escaped;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) escaped += "\\&";
    const auto special = kEscapes.find(c);
    escaped += special == kEscapes.end() ? std::string_view(&c, 1) : special->second;
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

/// Returns "--out DIR", "[--set K=V]" or "CONFIG".
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
  if (command.subcommands.empty()) {
    std::string synopsis = bold("trainer " + command.path);
    for (const bool positional : {true, false})
      for (const auto& argument : command.arguments)
        if (argument.is_positional == positional && !is_help(argument))
          synopsis += " " + synopsis_of(argument);
    text += ".PP\n" + synopsis + "\n";
  }
  return text + arguments_of(command) + examples_of(command);
}

/// Returns trainer(1) in the language of man(7).
std::string man_page(const std::vector<CommandDoc>& commands) {
  const auto& program = commands.front();
  auto text = fmt::format(
      ".TH TRAINER 1 \"{}\" \"Millrace {}\" \"User Commands\"\n"
      ".SH NAME\ntrainer \\- train object detectors from a TOML file\n"
      ".SH SYNOPSIS\n.B trainer\n[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n{}\n"
      "Results go to standard output, messages to standard error; on a terminal a command ends "
      "with the suggested next step.\n"
      "Each command has \\fB\\-\\-help\\fR.\n",
      revision_day(), roff(MILLRACE_VERSION), sentence(program.doc));
  text += ".SH OPTIONS\n" + arguments_of(program);
  text += ".SH COMMANDS\n";
  for (const auto& command : commands)
    if (!command.path.empty()) text += section_of(command);
  return text + kManualEnd;
}

struct ManArguments {
  const CLI::App* program = nullptr;
};

int man(const ManArguments& arguments) {
  print_text(man_page(describe_commands(*arguments.program)));
  suggest_next("trainer man | man -l -");
  return kDone;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "man", man);
  arguments.program = &app;
  add_examples(command, {"trainer man | man -l -"});
}

}  // namespace millrace::cli
