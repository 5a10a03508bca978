// Repeats training steps: a recorded step that was not finite, or steps that must give the same
// bytes twice.
#pragma once

#include <cstdint>
#include <filesystem>

#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// Repeats the step that `folder` records (millrace/trainer/failed_steps.h) on the CPU and prints
/// its losses, the tensors that are not finite, and the operator that produced the first such
/// value. Returns kDone if all metrics equal the recorded ones, otherwise kFailed. Throws Error if
/// the folder cannot be read or belongs to another model.
int replay(const Recipe& recipe, const std::filesystem::path& folder);

/// Trains `steps` steps twice from the same start, each time with a new flow, detector and
/// optimizer. Prints that all values are equal, or the first step and tensor that differ; batch,
/// loss, gradients and parameters are compared in this order. Writes no files. Returns kDone if
/// equal, kFailed if not, kStoppedEarly after a signal.
int verify_determinism(const Recipe& recipe, std::int64_t steps);

}  // namespace millrace::cli
