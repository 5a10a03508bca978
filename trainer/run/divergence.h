// Continues a diverged training from an earlier checkpoint: automatically with train.on_divergence
// = "return", else when the run is resumed.
//
// Returns are only recorded in checkpoints: a training that is killed and resumed from any
// checkpoint diverges at the same step and returns in the same way.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/base/config.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// Removes the checkpoints in `folder` that are newer than the one to return to. That is the newest
/// one saved after a good step from which the failing step can be computed differently. Until
/// training has passed the failing step, each return uses an older checkpoint than the previous
/// return. Throws Error if no checkpoint is found, or after the fifth return; --resume then
/// continues from the newest checkpoint saved before the last good step, if there is one.
void remove_diverged_checkpoints(const std::filesystem::path& folder, const Position& diverged,
                                 const TrainOptions& train);

/// Removes the same checkpoints after a training that ended because it diverged, or none if no
/// checkpoint would be left. Returns a sentence that names the step from which --resume continues.
std::string remove_diverged_for_resume(const std::filesystem::path& folder,
                                       const Position& diverged);

/// Sets the position of a checkpoint so that the next divergence returns to an earlier one, unless
/// training passes `failing_step` before.
void go_further_back(Position& at, std::int64_t failing_step);

/// Changes the position of the newest checkpoint as train.on_return requires after a return.
/// Returns a sentence about the change.
std::string change_after_return(Position& at, const Position& diverged, const TrainOptions& train);

/// Resets the count of returns if `config` differs from the checkpoint's in a key that affects
/// results, and the factor of the learning rate if the optimizer or the schedule differs. Returns a
/// sentence about it; empty = nothing was reset.
std::string count_returns_anew(Checkpoint& checkpoint, const Config& config);

}  // namespace millrace
