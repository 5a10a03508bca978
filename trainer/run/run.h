// Trains from a recipe: data, detector, callbacks and run folder together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

struct RunOptions {
  std::filesystem::path config_file;  // run folders are named after it: <output>/<its stem>-N
  std::string program;                // name and version, for the run's record
  std::filesystem::path output;
  std::optional<std::filesystem::path> resumed;  // see find_run; the chief's counts
};

struct RunEnd {
  TrainEnd training;
  std::filesystem::path folder;
};

/// Trains; every rank calls it. The run folder, which the chief alone reads and writes, is made
/// once detector, weights, data and callbacks fit together: a start that fails leaves none. It
/// receives config.toml, record.json (see run_record.h), log.txt and what callbacks write, and is
/// locked meanwhile. A run that has nothing left to do is left as it is. Throws ConfigError if data
/// or configuration cannot work, Error if the run fails.
RunEnd run_training(const Session& session, const RunOptions& options);

/// The recipe's callbacks, each with its `every`. Throws ConfigError.
CallbackList make_callbacks(const Recipe& recipe);

}  // namespace millrace
