// A training that diverged goes on from an earlier checkpoint: by itself with train.on_divergence =
// "return", else when it is resumed.
//
// Only the checkpoints record the returns: a training that is killed and resumed from any of them
// diverges at the same step and returns in the same way.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/base/config.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// Removes the checkpoints in `folder` that are newer than the one to return to: the newest that
/// was saved after a good step from which the failing step can be computed otherwise. Until
/// training has passed the failing step, each return goes to an older checkpoint than the last one.
/// Throws Error if there is no such checkpoint, or after the fifth return; --resume then starts
/// from the newest that was saved before the last good step, if there is one.
void give_up_diverged_checkpoints(const std::filesystem::path& folder, const Position& diverged,
                                  const TrainOptions& train);

/// Removes the same checkpoints after a training that ended with its divergence, or none if no
/// checkpoint would be left. Returns a sentence about where --resume goes on.
std::string give_up_for_resume(const std::filesystem::path& folder, const Position& diverged);

/// Makes the position of a checkpoint one from which the next divergence, unless training passes
/// `failing_step` before, leads further back.
void go_further_back(Position& at, std::int64_t failing_step);

/// Makes the position of the newest checkpoint that of the training after its return, as
/// train.on_return says. Returns a sentence about it.
std::string take_another_way(Position& at, const Position& diverged, const TrainOptions& train);

/// Resets the count of returns if `config` differs from the checkpoint's in a key that decides
/// results, and the rate's factor too if the optimizer or the schedule differs. Returns a sentence
/// about it; empty: nothing was reset.
std::string count_returns_anew(Checkpoint& checkpoint, const Config& config);

}  // namespace millrace
