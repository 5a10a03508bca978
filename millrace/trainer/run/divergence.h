// train.on_divergence = "return": a training that diverged goes on from an earlier checkpoint.
//
// Nothing but the checkpoints says that it returned: one that is killed and resumed from any of
// them diverges at the same step and returns in the same way.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// Removes the checkpoints in `folder` that lie within the bad steps before `diverged`. One that
/// this training returned to before, and came to no other, goes as well if there is one before it.
/// Throws Error if none is left, or after the fifth return.
void give_up_diverged_checkpoints(const std::filesystem::path& folder, const Position& diverged);

/// Makes the position of the newest checkpoint that of the training after its return, as
/// train.on_return says. Returns a sentence about it.
std::string take_another_way(Position& at, const Position& diverged, const TrainOptions& train);

}  // namespace millrace
