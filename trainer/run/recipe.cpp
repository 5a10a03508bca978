#include "millrace/trainer/run/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/stages/multi_scale.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/callback.h"

namespace millrace {
namespace {

void take_optimizer(const Config& from, Config& tree, Recipe& recipe) {
  recipe.optimizer = take_section<OptimizerOptions>(from, "optimizer", tree, {"groups"});
  auto& table = *tree.find("optimizer");
  auto rules = list_of_tables(table, "optimizer", "groups");
  for (auto& rule : rules) {
    recipe.optimizer.groups.push_back(read_options<ParameterRule>(rule));
    require(rule, "match", rule.find("match") != nullptr,
            "is required: the name pattern of the parameters");
    complete_options<ParameterRule>(rule);
  }
  if (!rules.empty()) table.set("groups", {std::move(rules), table.find("groups")->origin});
}

void take_model(const Config& from, Config& tree, Recipe& recipe) {
  auto table = from.section("model");
  const auto options = read_part<ModelOptions>(table);
  if (options.type.empty())
    throw ConfigError(fmt::format("{}: [model] needs a type{}", from.origin.text(),
                                  suggestion("", detectors().names())));
  recipe.model_type = options.type;
  recipe.weights = options.weights;
  recipe.force_weights = options.force_weights;
  const auto& entry = detectors().at(options.type, table.find("type")->origin);
  entry.check(own_options(table));
  complete_options<ModelOptions>(table);
  recipe.model = without(table, {"force_weights"});
  entry.complete(recipe.model);
  merge(table, recipe.model);
  tree.set("model", std::move(table));
}

/// Reads the time at which the callback of a complete table is triggered.
std::optional<When> read_when(const std::string& name, const Config& table,
                              const CallbackSwitches& switches) {
  const auto where = [&](const char* key) {
    return fmt::format("{}: callbacks.{}.{}", table.find(key)->origin.text(), name, key);
  };
  const auto* every = table.find("every");
  if (!every) {
    for (const auto* key : {"only_if", "at_start"})
      if (table.find(key))
        throw ConfigError(
            fmt::format("{} requires `every`, which this callback does not have", where(key)));
    return std::nullopt;
  }
  std::optional<Condition> only_if;
  if (!switches.only_if.empty()) only_if.emplace(switches.only_if, where("only_if"));
  return When(Every(parse_period(std::get<std::string>(every->data), where("every"))), only_if,
              switches.at_start);
}

void take_callbacks(const Config& from, Config& tree, Recipe& recipe) {
  auto asked = from.section("callbacks");
  for (const auto& [name, entry] : callbacks().entries())
    if (entry.create.by_default && !asked.find(name)) asked.set(name, Config{});
  Config complete;
  for (auto [name, table] : asked.table()) {
    if (auto callback = read_callback(name, table))
      recipe.callbacks.push_back(std::move(*callback));
    complete.set(name, std::move(table));
  }
  tree.set("callbacks", std::move(complete));
}

void check_passes(const Recipe& recipe, const Config& tree) {
  const auto size = recipe.train.micro_batch;
  const auto parts = recipe.data.batch_size / std::max<std::int64_t>(1, size);
  require(*tree.find("train"), "passes", recipe.train.passes <= std::max<std::int64_t>(1, parts),
          size > 0
              ? fmt::format(
                    "is more than the number of micro-batches (train.micro_batch) in a batch: {}",
                    parts)
              : fmt::format("is more than the number of images in a batch (data.batch_size): {}",
                            parts));
}

/// Checks the other tables for options that train.micro_batch does not allow.
void check_micro_batch(const Recipe& recipe, const Config& tree) {
  const auto size = recipe.train.micro_batch;
  if (size == 0) return;
  const auto& data = *tree.find("data");
  require(data, "batch_size", recipe.data.batch_size % size == 0,
          fmt::format("must be a multiple of train.micro_batch ({})", size));
  require(data, "test_batch_size", recipe.data.test_batch_size == 1,
          "must be 1 with train.micro_batch, since the other images of a batch would depend on the "
          "number of ranks");
  for (const auto& stage : recipe.stages)
    if (component_type(stage, detection_stages().kind()) == MultiScale::kName)
      throw ConfigError(
          fmt::format("{}: stage '{}' draws a random size for the batch of each rank, so "
                      "train.micro_batch cannot give the same bytes; remove one of them",
                      stage.origin.text(), MultiScale::kName));
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '-';
}

}  // namespace

std::optional<RecipeCallback> read_callback(const std::string& name, Config& table) {
  if (!table.is_table())
    throw ConfigError(
        fmt::format("{}: not a table; write [callbacks.{}]", table.origin.text(), name));
  if (!std::ranges::all_of(name, is_word))  // names the callback's files in the run folder
    throw ConfigError(
        fmt::format("{}: a callback's name may contain letters, digits, '_' and '-' only: '{}'",
                    table.origin.text(), name));
  auto switches = read_part<CallbackSwitches>(table);
  if (switches.type.empty()) switches.type = name;
  const auto& entry = callbacks().at(switches.type, table.origin);
  const auto own = [&] { return without(table, {"type", "enabled", "only_if", "at_start"}); };
  entry.check(own());
  entry.complete(table);
  auto when = read_when(name, table, switches);
  if (!switches.enabled) return std::nullopt;
  return RecipeCallback{name, switches.type, own(), std::move(when)};
}

std::uint32_t evaluated_detections(const Recipe& recipe) {
  const auto callback = std::ranges::find(recipe.callbacks, "evaluate", &RecipeCallback::type);
  if (callback == recipe.callbacks.end()) return 0;
  const auto* value = callback->table.find("max_detections");
  return value ? static_cast<std::uint32_t>(std::get<std::int64_t>(value->data)) : 0;
}

Recipe resolve(Config from) {
  Recipe recipe;
  const auto top = read_options<TopOptions>(
      from, {"data", "model", "train", "optimizer", "schedule", "callbacks"});
  recipe.plugins = top.plugins;
  Config tree(Config::Table{}, from.origin);
  complete_options<TopOptions>(tree);
  if (const auto* plugins = from.find("plugins")) tree.set("plugins", *plugins);
  static_cast<DataRecipe&>(recipe) = resolve_data(from, tree);
  take_model(from, tree, recipe);
  recipe.train = take_section<TrainOptions>(from, "train", tree);
  take_optimizer(from, tree, recipe);
  recipe.schedule = take_section<ScheduleOptions>(from, "schedule", tree);
  recipe.schedule.check(*tree.find("schedule"), recipe.train.epochs);
  take_callbacks(from, tree, recipe);
  check_micro_batch(recipe, tree);
  check_passes(recipe, tree);
  recipe.tree = std::move(tree);
  return recipe;
}

}  // namespace millrace
