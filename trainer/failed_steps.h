// Steps that fail: a loss or gradient that is not finite.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/step_record.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// The end of a training whose last steps were rejected.
struct Diverged : Error {
  Diverged(const std::string& what, Position after) : Error(what), at(std::move(after)) {}
  Position at;  // after the last of these steps
};

/// Counts a rejected step in `at`, records the first three of a run in `run`/diverged for --replay
/// (unless `run` is empty), and warns of these and of the first in a row. Throws Diverged for the
/// tenth in a row, unless the training returns to a checkpoint then.
void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train);

/// Throws Diverged for a training that has just taken its last step if most of its steps were
/// skipped and the last ones were: it has learned nothing, or lost it.
void check_has_learned(const Position& at);

/// Whether a training stops here to return to a checkpoint.
bool has_diverged(const Position& at, const TrainOptions& train);

}  // namespace millrace
