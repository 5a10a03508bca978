// A training from a recipe: data, detector, callbacks and run folder put together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

struct RunOptions {
  std::filesystem::path config_file;  // run folders are named after it: <output>/<its stem>-N
  std::string program;                // name and version, for the run's record
  std::filesystem::path output;
  std::optional<std::filesystem::path> resumed;  // see find_run; the chief's alone counts
};

/// What a run leaves.
struct RunEnd {
  TrainEnd training;
  std::filesystem::path folder;
};

/// Trains. The run folder is made once the detector, its weights, the data and the callbacks are there and fit together: a
/// start that fails leaves none. It receives config.toml, run.json (see run_record.h), log.txt and what callbacks write. No
/// other process can train in it meanwhile. A run that was done, and has nothing left to do, is left as it is.
/// Of several ranks, each of which calls this, only the chief reads and writes it. Throws ConfigError where data or
/// configuration cannot work, Error where the run fails.
RunEnd run_training(const Recipe& recipe, const RunOptions& options,
                    const Cluster& cluster = Cluster::alone());

/// The recipe's detector with random weights, on its train.device: of several GPUs the `local_rank`-th. Throws ConfigError.
std::unique_ptr<Detector> build_detector(const Recipe& recipe,
                                         const std::vector<std::string>& classes,
                                         std::int64_t local_rank = 0);

/// Compares what model.weights names, if anything, with the recipe, and logs where heads and other parts differ. Throws
/// ConfigError where there is no such file or it contradicts the recipe (model_card.h) in what its tensors mean.
void check_initial_weights(const Recipe& recipe);

/// Loads what model.weights names, if anything, into a detector of these classes, and logs what came of it. Throws Error.
void load_initial_weights(Detector& detector, const Recipe& recipe,
                          const std::vector<std::string>& classes);

/// Whether libtorch is to choose operators that give the same bytes every time.
void use_deterministic_maths(bool deterministic);

/// The validation split of a recipe; classes are those of `classes` by name. Throws ConfigError
/// where it is missing.
EvalData open_validation(const Recipe& recipe, const std::vector<std::string>& classes);

/// The recipe's callbacks, each with its `every`. Throws ConfigError.
CallbackList make_callbacks(const Recipe& recipe);

}  // namespace millrace
