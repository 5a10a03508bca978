#include "millrace/cli/describe/command_tree.h"

#include <string_view>
#include <utility>

namespace millrace::cli {
namespace {

using Kind = ArgumentDoc::Kind;

/// Returns the choices in a type name: "a" and "b" for "TEXT:{a,b}".
std::vector<std::string> choices_in(const std::string& type) {
  const auto open = type.find('{'), shut = type.find('}');
  if (open == type.npos || shut == type.npos) return {};
  return CLI::detail::split(type.substr(open + 1, shut - open - 1), ',');
}

Kind kind_of(const std::string& value, bool is_positional) {
  if (value == "K=V") return Kind::setting;
  if (value == "DIR") return Kind::folder;
  if (value == "CONFIG") return Kind::toml_file;
  for (const auto* file : {"FILE", "PATH", "W"})
    if (value == file) return Kind::file;
  return is_positional || value.starts_with("FILE.") || value.find('/') != value.npos ? Kind::file
                                                                                      : Kind::other;
}

ArgumentDoc describe(const CLI::Option& option) {
  ArgumentDoc argument;
  argument.is_positional = option.get_positional();
  argument.is_required = option.get_required();
  argument.doc = option.get_description();
  if (argument.is_positional) argument.names.push_back(option.get_name());
  for (const auto& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) argument.names.push_back("--" + name);
  if (!argument.is_positional && option.get_items_expected_min() == 0) {
    argument.kind = Kind::flag;
    return argument;
  }
  argument.preset = option.get_default_str();
  const auto type = option.get_type_name();
  argument.choices = choices_in(type);
  argument.value =
      argument.is_positional ? argument.names.front() : CLI::detail::split(type, ':').front();
  argument.kind =
      argument.choices.empty() ? kind_of(argument.value, argument.is_positional) : Kind::words;
  if (!argument.choices.empty() && !argument.is_positional)
    argument.value = type.substr(type.find('{'), type.find('}') - type.find('{') + 1);
  return argument;
}

void describe(const CLI::App& command, const std::string& path, std::vector<CommandDoc>& all) {
  CommandDoc doc{.path = path, .doc = command.get_description()};
  for (const auto* option : command.get_options())
    if (!option->get_group().empty()) doc.arguments.push_back(describe(*option));
  constexpr std::string_view kIndent = "  ";  // as in add_examples
  for (const auto& line : CLI::detail::split(command.get_footer(), '\n'))
    if (line.starts_with(kIndent)) doc.examples.push_back(line.substr(kIndent.size()));
  const auto below = command.get_subcommands([](const CLI::App*) { return true; });
  for (const auto* one : below)
    doc.subcommands.emplace_back(one->get_name(), one->get_description());
  all.push_back(std::move(doc));
  for (const auto* one : below)
    describe(*one, path + (path.empty() ? "" : " ") + one->get_name(), all);
}

}  // namespace

std::vector<CommandDoc> describe_commands(const CLI::App& program) {
  std::vector<CommandDoc> all;
  describe(program, "", all);
  return all;
}

}  // namespace millrace::cli
