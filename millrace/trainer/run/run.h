// A training from a recipe: data, detector, callbacks and run folder put together.
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
  std::optional<std::filesystem::path> resumed;  // see find_run; the chief's alone counts
};

/// What a run leaves.
struct RunEnd {
  TrainEnd training;
  std::filesystem::path folder;
};

/// Trains. The run folder is made once the detector, its weights, the data and the callbacks are
/// there and fit together: a start that fails leaves none. It receives config.toml, run.json (see
/// run_record.h), log.txt and what callbacks write. No other process can train in it meanwhile. A
/// run that was done, and has nothing left to do, is left as it is. Of several ranks, each of which
/// calls this, only the chief reads and writes it. Throws ConfigError where data or configuration
/// cannot work, Error where the run fails.
RunEnd run_training(const Session& session, const RunOptions& options);

/// The recipe's callbacks, each with its `every`. Throws ConfigError.
CallbackList make_callbacks(const Recipe& recipe);

}  // namespace millrace
