#include "millrace/trainer/run/config_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/train_options.h"

namespace millrace {
namespace {

std::string text(const std::map<std::string, const Config*>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "nothing" : value_text(*found->second);
}

std::string line(const ConfigChange& change) {
  return fmt::format("{}: was {}, is {}", change.key, change.was, change.is);
}

constexpr auto kInstead =
    "set it back, or start a new run without --resume; model.weights can be this checkpoint's "
    "model.safetensors";

/// Throws ConfigError for the changes of keys with these prefixes, or for the key `otherwise`
/// without such changes.
[[noreturn]] void refuse(const std::vector<ConfigChange>& changes,
                         std::initializer_list<std::string_view> prefixes,
                         const std::string& otherwise, const std::string& why) {
  std::vector<std::string> lines;
  for (const auto& change : changes)
    if (std::ranges::any_of(prefixes, [&](auto prefix) { return change.key.starts_with(prefix); }))
      lines.push_back(fmt::format("{}: {}", change.origin.text(), line(change)));
  if (lines.empty()) lines.push_back(otherwise);
  throw ConfigError(fmt::format("{}: {}; {}", fmt::join(lines, ", "), why, kInstead));
}

/// Keys that must not change, and the reasons.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFixed = {{
    {"model.type", "the checkpoint contains weights of the other model"},
    {"optimizer.type", "the checkpoint contains the state of the other optimizer"},
    {"data.shuffle_window", "it determines the order of the data, which the checkpoint continues"},
    {"train.seed", "it determines the order of the data, which the checkpoint continues"},
}};

/// Returns true if the option `key` of the table `T`, whose keys have this prefix, affects results.
template <class T>
bool decides_in(std::string_view key, std::string_view prefix) {
  T value;
  const auto all = described(value);
  const auto entry =
      std::ranges::find(all.entries(), key.substr(prefix.size()), &Options::Entry::name);
  return entry == all.entries().end() || entry->affected != Affects::run;
}

/// Handles callbacks.NAME.OPTION; `rest` is e.g. "evaluate.every". Options that enable a callback
/// affect results if any of its own options does.
bool decides_in_callback(const std::string& rest, const Config& config) {
  const auto dot = rest.find('.');
  const auto name = rest.substr(0, dot);
  const auto* type = config.find_path("callbacks." + name + ".type");
  const auto* text = type ? std::get_if<std::string>(&type->data) : nullptr;
  const auto& known = callbacks().entries();
  const auto entry = known.find(text && !text->empty() ? *text : name);
  if (entry == known.end() || dot == std::string::npos) return true;
  const auto deciding = entry->second.create.deciding();
  CallbackSwitches switches;
  const auto all = described(switches);
  const auto option = rest.substr(dot + 1);
  if (!std::ranges::count(all.entries(), option, &Options::Entry::name))
    return std::ranges::count(deciding, option.substr(0, option.find('.'))) > 0;
  // A callback of a plug-in may do anything, even without options.
  return !deciding.empty() || !entry->second.plugin.empty();
}

}  // namespace

bool decides_results(const std::string& key, const Config& config) {
  constexpr std::string_view kData = "data.", kTrain = "train.", kCallbacks = "callbacks.";
  if (key.starts_with(kData)) return decides_in<DataOptions>(key, kData);
  if (key.starts_with(kTrain)) return decides_in<TrainOptions>(key, kTrain);
  if (key.starts_with(kCallbacks))
    return decides_in_callback(key.substr(kCallbacks.size()), config);
  // These keys only name the weights, which are compared themselves.
  return key != "model.weights" && key != "model.force_weights";
}

std::vector<ConfigChange> config_changes(const Config& was, const Config& is) {
  const auto before = leaves(was), now = leaves(is);
  auto keys = before;
  keys.insert(now.begin(), now.end());
  std::vector<ConfigChange> changes;
  for (const auto& [key, value] : keys) {
    ConfigChange change{key, text(before, key), text(now, key), value->origin};
    if (const auto present = now.find(key); present != now.end())
      change.origin = present->second->origin;
    if (change.was != change.is) changes.push_back(std::move(change));
  }
  return changes;
}

void check_resume(const Checkpoint& checkpoint, const ResumedTraining& training) {
  const auto changes = config_changes(
      parse_config(checkpoint.config, "the checkpoint's config.toml"), training.config);
  for (const auto& change : changes) log_info("changed since the checkpoint: {}", line(change));
  for (const auto& [key, why] : kFixed)
    for (const auto& change : changes)
      if (change.key == key && change.was != "nothing")  // an older version may lack the key
        refuse(changes, {key}, "", std::string(why));
  if (!checkpoint.classes.empty() && checkpoint.classes != training.classes)
    refuse(changes, {"data.classes", "data.root", "data.train"}, "data.classes",
           fmt::format("the checkpoint's classes are {}, now they are {}", checkpoint.classes,
                       training.classes));
  if (checkpoint.epoch_size > 0 && checkpoint.epoch_size != training.epoch_size)
    refuse(changes, {"data.root", "data.train", "data.sources"}, "data.root",
           fmt::format("the checkpoint was saved with {} samples, now there are {}",
                       checkpoint.epoch_size, training.epoch_size));
  try {
    check_fits(named_values(training.model), checkpoint.model, "the model");
  } catch (const Error& problem) {
    refuse(changes, {"model."}, "model", problem.what());
  }
}

}  // namespace millrace
