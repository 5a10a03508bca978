// Runs a training from a recipe: data, detector, callbacks and run folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

struct RunOptions {
  /// Configuration; its stem names run folders: <output>/<stem>-N.
  std::filesystem::path config_file;
  std::string program;  // name and version for the run's record
  std::filesystem::path output;
  /// Run to resume, see find_run; only that of rank 0 is used.
  std::optional<std::filesystem::path> resumed;
};

struct RunEnd {
  TrainEnd training;
  std::filesystem::path folder;
};

/// Trains; every rank calls it. The run folder, which only rank 0 accesses, is created after
/// detector, weights, data and callbacks have been checked, so a start that fails leaves no folder.
/// It contains config.toml, record.json (see run_record.h), log.txt and the output of callbacks,
/// and is locked during the training. A run with no steps left is not changed. Throws ConfigError
/// if data or configuration are invalid, Error if the run fails.
RunEnd run_training(const Session& session, const RunOptions& options);

/// Creates the recipe's callbacks, each with its time of trigger. Throws ConfigError.
CallbackList make_callbacks(const Recipe& recipe);

}  // namespace millrace
