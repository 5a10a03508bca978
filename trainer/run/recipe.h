// A recipe: a resolved and checked configuration, from which a run is created.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/dataflow/data_recipe.h"
#include "millrace/trainer/every.h"
#include "millrace/trainer/optimizer/optimizer_options.h"
#include "millrace/trainer/optimizer/schedule.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// The callback of one table [callbacks.NAME].
struct RecipeCallback {
  std::string name;          // NAME of the table
  std::string type;          // registered name of the callback; NAME by default
  Config table;              // complete table without the keys of CallbackSwitches
  std::optional<When> when;  // time of its trigger; nullopt = never
};

/// Top-level options of a configuration.
struct TopOptions {
  Options::Strings plugins;
  void describe(Options& o) { o.add("plugins", plugins, "shared objects to load"); }
};

/// Options of the table [model] except those of its detector.
struct ModelOptions {
  std::string type;
  std::string weights;
  bool force_weights = false;
  void describe(Options& o) {
    o.add("type", type, "type of the detector");
    o.add("weights", weights, "file of the initial weights; empty = random values");
    o.add("force_weights", force_weights,
          "use weights even if they were trained with other pixel statistics, anchors ..., are not "
          "finite, or lack frozen parameters");
  }
};

/// Options that every table [callbacks.NAME] has besides those of its callback.
struct CallbackSwitches {
  std::string type;
  bool enabled = true;
  std::string only_if;
  bool at_start = false;
  void describe(Options& o) {
    o.add("type", type, "type of the callback; empty = the table's name");
    o.add("enabled", enabled, "use this callback");
    o.add("only_if", only_if,
          "with `every`: condition for running, e.g. \"epoch >= 8\"; empty = always");
    o.add("at_start", at_start, "with `every`: also run before the first step");
  }
};

/// Checks a table [callbacks.NAME] and fills in its defaults. Returns nullopt if `enabled = false`.
/// Throws ConfigError.
std::optional<RecipeCallback> read_callback(const std::string& name, Config& table);

struct Recipe : DataRecipe {
  Config tree;  // complete configuration; each value has its origin
  std::vector<std::string> plugins;
  std::string model_type;
  std::string weights;         // weight file; empty = random initialization
  bool force_weights = false;  // true = use weights even if they contradict the recipe
  Config model;                // complete table [model] without `force_weights`
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::vector<RecipeCallback> callbacks;  // enabled callbacks

  std::int64_t images_per_step() const { return data.batch_size * optimizer.accumulate; }
};

/// Returns the maximum number of detections per image and class that the recipe's evaluation counts
/// (callbacks.evaluate.max_detections); 0 = the default.
std::uint32_t evaluated_detections(const Recipe& recipe);

/// Checks every key of a configuration and fills in every default, including callbacks registered
/// with `by_default`. Plug-ins must be loaded before. Throws ConfigError.
Recipe resolve(Config tree);

}  // namespace millrace
