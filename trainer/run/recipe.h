// A resolved configuration: all that a run is made from, checked before anything runs.
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

/// One [callbacks.NAME].
struct RecipeCallback {
  std::string name;          // of the table
  std::string type;          // the registered callback; by default the name
  Config table;              // complete, without the keys of CallbackSwitches
  std::optional<When> when;  // it is triggered; nothing: never
};

/// The top of the tree besides its tables.
struct TopOptions {
  Options::Strings plugins;
  void describe(Options& o) { o.add("plugins", plugins, "shared objects to load"); }
};

/// [model], besides the options of the detector that it names.
struct ModelOptions {
  std::string type;
  std::string weights;
  bool force_weights = false;
  void describe(Options& o) {
    o.add("type", type, "the detector");
    o.add("weights", weights, "file that training starts from; empty: random values");
    o.add("force_weights", force_weights,
          "start from weights although they were trained with other pixels, anchors ..., are not "
          "finite, or lack what is frozen");
  }
};

/// Any [callbacks.NAME], besides the options of the callback.
struct CallbackSwitches {
  std::string type;
  bool enabled = true;
  std::string only_if;
  bool at_start = false;
  void describe(Options& o) {
    o.add("type", type, "the callback, where the table has a name of its own");
    o.add("enabled", enabled, "false: leave this callback out");
    o.add("only_if", only_if, "with `every`: only while this holds, such as \"epoch >= 8\"");
    o.add("at_start", at_start, "with `every`: also before the first step");
  }
};

/// Checks a [callbacks.NAME] and fills in its defaults. Nothing if `enabled = false`. Throws
/// ConfigError.
std::optional<RecipeCallback> read_callback(const std::string& name, Config& table);

struct Recipe : DataRecipe {
  Config tree;  // complete, each value with its origin
  std::vector<std::string> plugins;
  std::string model_type;
  std::string weights;         // empty: from random
  bool force_weights = false;  // even if they contradict the recipe
  Config model;                // [model], complete, without `force_weights`
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::vector<RecipeCallback> callbacks;  // those that are enabled

  std::int64_t images_per_step() const { return data.batch_size * optimizer.accumulate; }
};

/// How many detections of an image and class the recipe's evaluation counts
/// (callbacks.evaluate.max_detections); 0: the usual.
std::uint32_t evaluated_detections(const Recipe& recipe);

/// Checks every key of a configuration and fills in every default, callbacks registered
/// `by_default` among them. Plug-ins must be loaded before. Throws ConfigError.
Recipe resolve(Config tree);

}  // namespace millrace
