// A training step that was not finite, once more.
#pragma once

#include <filesystem>

#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// Repeats the step that `folder` records (millrace/trainer/step_record.h) on the CPU and prints
/// its losses, the tensors that are not finite, and the operator that made the first such value.
/// kDone where all came out as recorded, else kFailed. Throws Error where the folder cannot be read
/// or is of another model.
int replay(const Recipe& recipe, const std::filesystem::path& folder);

}  // namespace millrace::cli
