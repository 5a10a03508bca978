// Steps whose loss or gradient is not finite.
#pragma once

#include <filesystem>

#include "millrace/trainer/detector/position.h"
#include "millrace/trainer/step_record.h"

namespace millrace {

/// Counts a rejected step in `at`, records the first three of a run in `run`/diverged for --replay
/// (unless `run` is empty), and warns. Throws Error for the tenth in a row.
void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run);

}  // namespace millrace
