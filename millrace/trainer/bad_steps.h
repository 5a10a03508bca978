// What becomes of steps that are not finite.
#pragma once

#include <filesystem>

#include "millrace/trainer/detector/position.h"
#include "millrace/trainer/step_record.h"

namespace millrace {

/// Counts a step that changed nothing in `at`, keeps the first few of a run, to be repeated, in
/// `run`/diverged (nothing where `run` is empty), and warns. That one cannot be kept does not end a
/// training; the tenth in a row does: throws Error.
void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run);

}  // namespace millrace
