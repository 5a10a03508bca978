#include "millrace/trainer/run/deciding_keys.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/train_options.h"

namespace millrace {
namespace {

/// Of the table `T`, whose keys lie below `prefix`.
template <class T>
bool decides_in(std::string_view key, std::string_view prefix) {
  T value;
  const auto all = described(value);
  const auto entry =
      std::ranges::find(all.entries(), key.substr(prefix.size()), &Options::Entry::name);
  return entry == all.entries().end() || entry->decided != Decides::run;
}

/// "evaluate.every" of "callbacks.evaluate.every". What switches a callback on or off decides what
/// its own options do.
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
  // A plug-in's may do anything, also without options.
  return !deciding.empty() || !entry->second.plugin.empty();
}

}  // namespace

bool decides_results(const std::string& key, const Config& config) {
  constexpr std::string_view kData = "data.", kTrain = "train.", kCallbacks = "callbacks.";
  if (key.starts_with(kData)) return decides_in<DataOptions>(key, kData);
  if (key.starts_with(kTrain)) return decides_in<TrainOptions>(key, kTrain);
  if (key.starts_with(kCallbacks))
    return decides_in_callback(key.substr(kCallbacks.size()), config);
  // The weights themselves are compared.
  return key != "model.weights" && key != "model.force_weights";
}

}  // namespace millrace
