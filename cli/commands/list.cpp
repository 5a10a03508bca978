// trainer list: lists every component that a configuration may name, and every option.
#include <fmt/format.h>

#include "millrace/cli/command.h"
#include "millrace/cli/describe/config_tables.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/detector.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/config_changes.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {
namespace {

/// Prints a line. On a terminal, a line that is too long is broken, and an option's description
/// stays in its column.
void print_list_line(std::string_view line) {
  static const std::string column(41, ' ');
  print_lines(line, line.starts_with("    ") ? std::string_view(column) : "    ");
}

void print_options(const std::vector<OptionHelp>& options) {
  for (const auto& option : options) print_list_line(fmt::format("    {}\n", option.text()));
}

template <class Factory>
bool is_in_every_run(const Factory& create) {
  if constexpr (requires { create.by_default; }) return create.by_default;
  return false;
}

/// `usage`: how a configuration names a component, with {} for the name.
template <class Factory>
void print_registry(const char* title, const char* usage, const Registry<Factory>& registry) {
  print_formatted("\n{}\n", title);
  for (const auto& [name, entry] : registry.entries()) {
    print_formatted("\n");
    print_list_line(fmt::format("  {}  {}{}\n", fmt::format(fmt::runtime(usage), name), entry.doc,
                                is_in_every_run(entry.create) ? " (in every run)" : ""));
    if (!entry.plugin.empty()) print_formatted("    from {}\n", entry.plugin);
    auto options = entry.help();
    for (auto& option : options)
      if (!option.follows.empty()) option.doc += "; default: " + option.follows;
    print_options(options);
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_of(const std::vector<OptionHelp>& options) {
  auto all = Json::array();
  for (const auto& option : options)
    all.push_back({{"name", option.name},
                   {"default", option.value},
                   {"follows", text_or_null(option.follows)},
                   {"doc", option.doc},
                   {"legal", text_or_null(option.legal)}});
  return all;
}

/// Adds to each option of a table whether it affects the results of a training.
Json with_deciding(Json options, const std::string& table) {
  for (auto& option : options)
    option["decides_results"] =
        decides_results(table + "." + option["name"].get<std::string>(), Config());
  return options;
}

template <class Factory>
Json json_of(const Registry<Factory>& registry) {
  auto all = Json::array();
  for (const auto& [name, entry] : registry.entries())
    all.push_back({{"name", name},
                   {"doc", entry.doc},
                   {"plugin", text_or_null(entry.plugin)},
                   {"in_every_run", is_in_every_run(entry.create)},
                   {"options", json_of(entry.help())}});
  return all;
}

Json json_of(const std::vector<ConfigTable>& all_tables) {
  auto all = Json::array();
  for (const auto& table : all_tables)
    all.push_back({{"name", table.name},
                   {"doc", table.doc},
                   {"options", with_deciding(json_of(table.options), table.name)}});
  return all;
}

Json json_of_callbacks() {
  auto all = json_of(callbacks());
  for (auto& callback : all) {
    const auto table = "callbacks." + callback["name"].get<std::string>();
    callback["options"] = with_deciding(std::move(callback["options"]), table);
    callback["decides_results"] = decides_results(table + ".enabled", Config());
  }
  return all;
}

struct ListArguments {
  std::vector<std::string> plugins;
  bool json = false;
};

int list(const ListArguments& arguments) {
  for (const auto& plugin : arguments.plugins) load_plugin(plugin, "--plugin");
  if (arguments.json) {
    print({{"tables", json_of(config_tables())},
           {"detectors", json_of(detectors())},
           {"callbacks", json_of_callbacks()},
           {"sources", json_of(detection_sources())},
           {"stages", json_of(detection_stages())}});
    return kDone;
  }
  print_formatted("TABLES of a configuration: option = default, description (legal values)\n");
  for (const auto& table : config_tables()) {
    print_formatted("\n");
    print_list_line(fmt::format("  {}  {}\n", table.name.empty() ? "(top)" : "[" + table.name + "]",
                                table.doc));
    print_options(table.options);
  }
  print_registry("DETECTORS", "[model] type = \"{}\"", detectors());
  print_registry("CALLBACKS", "[callbacks.{}]", callbacks());
  print_registry("SOURCES of a data flow", "[[data.sources]] type = \"{}\"", detection_sources());
  print_registry("STAGES of a data flow", "[[data.stages]] type = \"{}\"", detection_stages());
  suggest_next("trainer config CONFIG shows the values of a configuration and their origins");
  return kDone;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "list", list);
  add_option(command, "--plugin", arguments.plugins, "FILE",
             "plug-in (shared object) to list as well; may be repeated")
      ->allow_extra_args(false);
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer list", "trainer list --plugin build/my_detector.so"});
}

}  // namespace millrace::cli
