// trainer list: every component that a configuration may name, and every option.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "coco/sample.h"
#include "dataflow/detection_sources.h"
#include "dataflow/detection_stages.h"
#include "plugins/loader.h"
#include "trainer/callback.h"
#include "trainer/detector.h"
#include "trainer/recipe.h"

namespace millrace::cli {
namespace {

void print_options(const std::vector<std::string>& lines) {
  for (const auto& line : lines) fmt::print("    {}\n", line);
}

template <class T>
void print_table(const char* name, const char* doc) {
  T defaults;
  Options options;
  defaults.describe(options);
  fmt::print("\n  [{}]  {}\n", name, doc);
  print_options(option_help(options));
}

/// `usage` shows how a configuration names a component, {} standing for the name.
template <class Factory>
void print_registry(const char* title, const char* usage, const Registry<Factory>& registry) {
  fmt::print("\n{}\n", title);
  for (const auto& [name, entry] : registry.entries()) {
    fmt::print("\n  {}  {}\n", fmt::format(fmt::runtime(usage), name), entry.doc);
    if (!entry.plugin.empty()) fmt::print("    from {}\n", entry.plugin);
    print_options(entry.help());
  }
}

template <class Factory>
Json json_of(const Registry<Factory>& registry) {
  auto all = Json::array();
  for (const auto& [name, entry] : registry.entries())
    all.push_back({{"name", name},
                   {"doc", entry.doc},
                   {"plugin", entry.plugin.empty() ? Json() : Json(entry.plugin)},
                   {"options", entry.help()}});
  return all;
}

void load(const std::vector<std::string>& plugins) {
  Config::Array files;
  for (const auto& plugin : plugins) files.push_back({plugin, {"--plugin", 0, 0}});
  Config tree;
  tree.set("plugins", {std::move(files), {}});
  load_plugins(tree);
}

int list(const std::vector<std::string>& plugins, bool json) {
  load(plugins);
  if (json) {
    print({{"detectors", json_of(detectors())},
           {"callbacks", json_of(callbacks())},
           {"sources", json_of(detection_sources())},
           {"stages", json_of(detection_stages())}});
    return kDone;
  }
  fmt::print("TABLES of a configuration: option = default, what it does (legal values)\n");
  print_table<DataOptions>("data", "the data set and how it is read");
  print_table<coco::SampleOptions>("data.sample", "makes data.root on first use");
  print_table<TrainOptions>("train", "the run");
  print_table<OptimizerOptions>("optimizer", "how gradients become new weights");
  print_table<ParameterRule>("[optimizer.groups]",
                             "what holds for some parameters; the first rule that fits counts");
  print_table<ScheduleOptions>("schedule", "the learning rate over time");
  print_registry("DETECTORS", "[model] name = \"{}\"", detectors());
  print_registry("CALLBACKS", "[callbacks.{}]", callbacks());
  print_registry("SOURCES of a data flow", "[[data.sources]] use = \"{}\"", detection_sources());
  print_registry("STAGES of a data flow", "[[data.stages]] use = \"{}\"", detection_stages());
  return kDone;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("list", "Show every detector, callback and stage with its options");
  auto plugins = std::make_shared<std::vector<std::string>>();
  command
      ->add_option("--plugin", *plugins,
                   "also show what this shared object brings; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto json = std::make_shared<bool>(false);
  add_json_flag(*command, *json);
  add_examples(*command, {"trainer list", "trainer list --plugin build/my_detector.so"});
  command->callback([=, &action] { action = [=] { return list(*plugins, *json); }; });
}

}  // namespace millrace::cli
