// Handling of steps whose loss or gradient is not finite.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/step_record.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// Thrown when a training ends because its last steps were rejected.
struct Diverged : Error {
  Diverged(const std::string& what, Position after) : Error(what), at(std::move(after)) {}
  Position at;  // position after the last rejected step
};

/// Counts a rejected step in `at`, records the first three of a run in `run`/diverged for --replay
/// (unless `run` is empty), and warns about these and about the first of consecutive ones. Throws
/// Diverged for the tenth in a row, unless the training then returns to a checkpoint.
void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train);

/// Called after the last step. Throws Diverged if the last steps were rejected and either they are
/// more than half of all steps or no step was taken.
void check_has_learned(const Position& at);

/// Returns true if a training stops here to return to a checkpoint.
bool has_diverged(const Position& at, const TrainOptions& train);

}  // namespace millrace
