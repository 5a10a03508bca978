// Training steps repeated: one that was not finite, and some that must give the same bytes twice.
#pragma once

#include <cstdint>
#include <filesystem>

#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// Repeats the step that `folder` records (millrace/trainer/step_record.h) on the CPU and prints
/// its losses, the tensors that are not finite, and the operator that made the first such value.
/// kDone where all came out as recorded, else kFailed. Throws Error where the folder cannot be read
/// or belongs to another model.
int replay(const Recipe& recipe, const std::filesystem::path& folder);

/// Trains `steps` steps twice from the same start, each time with a flow, detector and optimizer of
/// its own, and prints that all is equal, or the first step and tensor that differs: batch, loss,
/// gradient or parameter, in this order. Writes nothing. kDone where equal, kFailed where not,
/// kStoppedEarly after a signal.
int verify_determinism(const Recipe& recipe, std::int64_t steps);

}  // namespace millrace::cli
