// train.on_divergence = "return": a training that diverged goes on from an earlier checkpoint.
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
/// Throws Error, and removes none, if there is no such checkpoint, or after the fifth return.
void give_up_diverged_checkpoints(const std::filesystem::path& folder, const Position& diverged,
                                  const TrainOptions& train);

/// Makes the position of the newest checkpoint that of the training after its return, as
/// train.on_return says. Returns a sentence about it.
std::string take_another_way(Position& at, const Position& diverged, const TrainOptions& train);

/// Resets the count of returns if `config` differs from the checkpoint's in a key that decides
/// results, and the rate's factor too if the optimizer or the schedule differs. Returns a sentence
/// about it; empty: nothing was reset.
std::string count_returns_anew(Checkpoint& checkpoint, const Config& config);

}  // namespace millrace
